"""Words of SQL that stand in an expression where the name of a column is meant. Loads sqlglot, as `dialect` does."""

from __future__ import annotations

import re
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from tidemill.core.sql.dialect import tokens_of, tree_of

if TYPE_CHECKING:
    from sqlglot import Token

_WORD = re.compile(r"[A-Za-z_]\w*")
_BEFORE = ("AND", "OR", "NOT", "CASE", "WHEN", "THEN", "ELSE", "BETWEEN", "IN", "LIKE")
_AFTER = ("AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "RLIKE", "THEN", "ELSE", "END")
_SOMETIMES = ("all", "as", "distinct", "interval")
"""Words that Spark reads as columns in some places, and sqlglot as syntax."""


def meant_as_columns(expression: str) -> tuple[str, ...]:
    """The words that are meant as columns in a text that is no expression: `from` in `from > 1`, not in `a from b`."""
    try:
        tokens = tokens_of(expression)
    except ValueError:
        return ()
    around = pairwise(pairwise(chain([None], tokens, [None])))
    words = (
        token.text
        for (before, token), (_, after) in around
        if token is not None and _is_word(token) and _ends_before(before) and _begins_after(after)
    )
    return tuple(dict.fromkeys(word for word in words if _is_reserved(word)))


def _is_reserved(word: str) -> bool:
    if word.lower() in _SOMETIMES:
        return True
    try:
        tree_of(f"{word} = 1")
    except ValueError:
        return True
    return False


def _is_word(token: Token) -> bool:
    return token.token_type.name not in ("STRING", "RAW_STRING", "IDENTIFIER") and bool(_WORD.fullmatch(token.text))


def _ends_before(token: Token | None) -> bool:
    """Whether a value may begin after this token."""
    if token is None or _is_word(token):
        return token is None or token.text.upper() in _BEFORE
    return _is_sign(token) and token.text not in (")", "]", ".")


def _begins_after(token: Token | None) -> bool:
    """Whether a value may have ended before this token."""
    if token is None or _is_word(token):
        return token is None or token.text.upper() in _AFTER
    return _is_sign(token) and token.text not in ("(", "[")


def _is_sign(token: Token) -> bool:
    return token.token_type.name not in ("STRING", "RAW_STRING", "IDENTIFIER", "NUMBER", "HEX_STRING")


_CASE = "CASE WHEN condition THEN value ELSE other END"
WRITTEN_AS = {
    "between": "value BETWEEN 1 AND 2",
    "case": _CASE,
    "when": _CASE,
    "in": "value IN (1, 2)",
    "and": "one AND other",
    "or": "one OR other",
    "not": "NOT condition",
    "div": "value DIV divisor",
}
"""Words that Spark lists among its functions, but that are operators; and how they are written."""

_CALLED = re.compile(r"(?:^|[(,=<>]|\b(?:and|or|not|then|else)\b)\s*(between|case|when|in)\s*\(", re.IGNORECASE)


def called_operator(expression: str) -> str | None:
    """What to write instead, if an expression that cannot be read calls an operator like a function."""
    found = _CALLED.search(expression)
    return None if found is None else f"`{found[1].lower()}` is no function: write {WRITTEN_AS[found[1].lower()]}"
