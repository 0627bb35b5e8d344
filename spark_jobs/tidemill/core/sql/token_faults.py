"""Refuses words and signs that the parser reads, and Spark does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemill.core.errors import DeclarationError

if TYPE_CHECKING:
    from sqlglot import Token

_NO_WORDS = ("STRING", "RAW_STRING", "IDENTIFIER", "NATIONAL_STRING", "HEX_STRING")


def check_words_and_signs(tokens: Sequence[Token], expression: str) -> None:
    """Refuse a name that needs backticks, `1e`, a lambda function of one variable in brackets, and wrong `extract`.

    Raises:
        DeclarationError: Spark's parser refuses one of these.
    """
    for at, token in enumerate(tokens):
        before, after = tokens[max(at - 3, 0) : at], tokens[at + 1 : at + 4]
        if (fault := _fault(token, before, after)) is not None:
            why, fix = fault
            raise DeclarationError(f"{why}, found in {expression!r}: Spark refuses it", fix=fix)


def _fault(token: Token, before: Sequence[Token], after: Sequence[Token]) -> tuple[str, str] | None:
    kind, text = token.token_type.name, token.text
    if kind not in _NO_WORDS and not text.isascii():
        return f"the name {text!r} has other signs than a to z, 0 to 9 and _", f"put it in backticks: `{text}`"
    if kind == "NUMBER" and text[-1:] in ("e", "E"):
        return f"{text!r} is no number", "write the exponent: 1e3"
    if kind == "ARROW" and [each.text for each in before][::2] == ["(", ")"]:
        return f"one variable stands in no brackets: ({before[1].text}) -> ...", f"write {before[1].text} -> ..."
    is_word = kind not in _NO_WORDS and text.lower() == "extract"
    if is_word and len(after) == 3 and after[0].text == "(":
        is_text, then = after[1].token_type.name == "STRING", after[2].text.lower()
        if (then == "from" and is_text) or (then == "," and not is_text):
            return "the field of `extract` is a word, with FROM behind it", "write extract(DAY FROM value)"
    return None
