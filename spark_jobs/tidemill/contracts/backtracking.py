"""Finds what in a predicate would be matched by Java's regular expressions.

Java matches a pattern by trying. For some patterns the time doubles with each character of the text, so that one record
could hold up a batch for ever. Patterns of contracts are matched by RE2, in time that is linear in the text.
"""

from __future__ import annotations

import re

_OPERATORS = frozenset(["RLIKE"])
_WORDS = ("count", "extract", "extract_all", "instr", "like", "replace", "substr")
_FUNCTIONS = frozenset(["rlike", "regexp", *(f"regexp_{word}" for word in _WORDS)])
_DELIMITED = frozenset(["split", "str_to_map"])
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")


def backtracking(sql: str) -> str:
    """What in a predicate is matched by trying, as it is called in SQL; empty if nothing is."""
    # Imported late: it loads the SQL parser.
    from sqlglot import exp  # noqa: PLC0415

    from tidemill.core.sql.dialect import tokens_of, tree_of  # noqa: PLC0415

    for token in tokens_of(sql):
        if token.token_type.name in _OPERATORS:
            return str(token.text).lower()
    for call in tree_of(sql).find_all(exp.Anonymous):
        name = call.name.lower()
        if name in _FUNCTIONS or (name in _DELIMITED and not all(map(_is_plain, call.expressions[1:3]))):
            return name
    return ""


def _is_plain(node: object) -> bool:
    """Whether an argument is a text or a number in which no character means anything to a pattern."""
    from sqlglot import exp  # noqa: PLC0415

    return isinstance(node, exp.Literal) and not _SPECIAL.search(str(node.this))
