"""Which columns an SQL expression reads, without an SQL engine.

A declaration is checked before Spark exists, so that a misspelt column fails where it is written. This reads only
names; whether the expression is valid SQL is Spark's to say, when the pipeline is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from tidemill.core.errors import DeclarationError

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<number>\d[\w.]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<comment>--|/\*)
      | (?P<mark>->|.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORD_TEXT = """
    all and any array as asc between both by case cast day days desc distinct div else end escape except exists
    extract false filter first following for from group hour hours ilike in interval is last leading like map
    microsecond microseconds millisecond milliseconds minute minutes month months not null nulls on or order over
    partition preceding quarter range regexp rlike row rows second seconds similar struct then to trailing true
    unbounded week weeks when where within year years
"""
_UNSTABLE_TEXT = """
    current_date current_time current_timestamp curdate localtimestamp now rand randn random uuid shuffle
    monotonically_increasing_id spark_partition_id input_file_name
"""
_KEYWORDS = frozenset(_KEYWORD_TEXT.split())
_UNSTABLE = frozenset(_UNSTABLE_TEXT.split())


def columns_of(expression: str) -> frozenset[str]:
    """The names of the columns that a Spark SQL expression reads.

    Of `user.name` it gives `user`. Functions, keywords, typed literals, types of a cast and variables of lambdas
    are no columns. Names keep their case.

    Raises:
        DeclarationError: the text is not one expression; or it reads the clock, chance or its place in the
            cluster, so that two attempts of one batch would not agree.
    """
    tokens = [(m.lastgroup, m.group()) for m in _TOKEN.finditer(expression) if not m.group().isspace()]
    _refuse_more_than_one(tokens, expression)
    _refuse_unstable(tokens, expression)
    return frozenset(_names(tokens)) - _lambda_variables(tokens)


def _refuse_more_than_one(tokens: list[tuple[str | None, str]], expression: str) -> None:
    """It becomes a part of a statement, which it must not end or go beyond."""
    depth = 0
    for kind, text in tokens:
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if depth < 0 or kind == "comment" or text == ";" or (text == "," and depth == 0):
            raise DeclarationError(f"expected one SQL expression, found `{text}` in {expression!r}")
    if depth or not tokens:
        raise DeclarationError(f"expected one SQL expression, found {expression!r}", fix="close every bracket")


def _refuse_unstable(tokens: list[tuple[str | None, str]], expression: str) -> None:
    unstable = sorted({text.lower() for kind, text in tokens if kind == "name"} & _UNSTABLE)
    if unstable:
        raise DeclarationError(
            f"`{unstable[0]}` gives another answer each time, found in {expression!r}",
            fix="use a column of the record: _timestamp is when the log took it, _offset is unique in its partition",
        )


def _names(tokens: list[tuple[str | None, str]]) -> Iterator[str]:
    padded = [("mark", ""), *tokens, ("mark", "")]
    for (_, before), (kind, text), (next_kind, after) in zip(padded, tokens, padded[2:], strict=False):
        if kind == "quoted":
            if before != ".":
                yield text[1:-1].replace("``", "`")
        elif kind == "name":
            typed_literal = next_kind == "text"
            named = before == "." or before.lower() == "as"
            if not (typed_literal or named or after == "(" or text.lower() in _KEYWORDS):
                yield text


def _lambda_variables(tokens: list[tuple[str | None, str]]) -> frozenset[str]:
    variables: set[str] = set()
    for index, ((kind, text), (_, after)) in enumerate(pairwise([*tokens, ("mark", "")])):
        if kind == "name" and after == "->":
            variables.add(text)
        if text == ")" and after == "->":
            opening = max(i for i in range(index) if tokens[i][1] == "(")
            variables.update(t for k, t in tokens[opening:index] if k == "name")
    return frozenset(variables)
