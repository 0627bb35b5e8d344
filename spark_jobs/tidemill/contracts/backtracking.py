"""Finds what in a predicate would be matched by Java's regular expressions.

Java matches a pattern by trying. For some patterns the time doubles with each character of the text, so that one record
could hold up a batch for ever. Patterns of contracts are matched by RE2, in time that is linear in the text.

Spark makes a regular expression of LIKE, too, with `.*` for each `%`. Each `%` with something behind it multiplies the
time by the length of the text: with one, Java takes 0.1 s for 1 MB; with two, 12 s for 120 KB, so a quarter of an hour
for 1 MB. Those at the end are free.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tidemill.contracts.likes import Like, likes

if TYPE_CHECKING:
    from sqlglot import exp

_OPERATORS = frozenset(["RLIKE"])
_WORDS = ("count", "extract", "extract_all", "instr", "like", "replace", "substr")
_FUNCTIONS = frozenset(["rlike", "regexp", *(f"regexp_{word}" for word in _WORDS)])
_DELIMITED = frozenset(["split", "str_to_map"])
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_IN_HIDING = re.compile(r"\\[uU0-9]")
"""How a text of SQL writes a character by its number; it may be `%`."""

_LINEAR = (
    "give the column logicalTypeOptions: {pattern: ...}, which takes linear time; or use startswith, endswith, "
    "contains, like, or split at a plain text"
)
_LIKE = (
    "write the pattern as a text with at most one % before its last other character; or give the column "
    "logicalTypeOptions: {pattern: ...}, which takes linear time; or use startswith, contains and endswith"
)


def backtracking(sql: str, tree: exp.Expr) -> tuple[str, str] | None:
    """What in a predicate is matched by trying, as it is called in SQL, and what to write instead; None if nothing."""
    # Imported late: it loads the SQL parser.
    from sqlglot import exp  # noqa: PLC0415

    from tidemill.core.sql.dialect import tokens_of  # noqa: PLC0415

    for token in tokens_of(sql):
        if token.token_type.name in _OPERATORS:
            return str(token.text).lower(), _LINEAR
    for call in tree.find_all(exp.Anonymous):
        name, arguments = call.name.lower(), call.expressions
        if name in _FUNCTIONS or (name in _DELIMITED and not all(map(_is_plain, arguments[1:3]))):
            return name, _LINEAR
    for like in likes(tree):
        if not _is_linear(like):
            return like.name, _LIKE
    return None


def _is_linear(like: Like) -> bool:
    """Whether all patterns are texts in which at most one `%` has something else behind it."""
    for pattern in like.patterns:
        if pattern is None or _IN_HIDING.search(pattern):
            return False
        known = like.sign is not None and len(like.sign) == 1
        text = re.sub(f"{re.escape(like.sign or '')}.", "", pattern, flags=re.DOTALL) if known else pattern
        if text.rstrip("%").count("%") > 1:
            return False
    return True


def _is_plain(node: object) -> bool:
    """Whether an argument is a text or a number in which no character means anything to a pattern."""
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(node, exp.Literal) and not _SPECIAL.search(str(node.this))
