"""Numbers that Spark reads in another way than the parser, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidemill.core.errors import DeclarationError

if TYPE_CHECKING:
    from sqlglot import Token

_MOST_DIGITS = 38


def check_numbers(tokens: Iterable[Token], expression: str) -> None:
    """Refuse numbers that are none to Spark.

    Raises:
        DeclarationError: a number is written with 0x or 0b, leaves a double, or has more than 38 digits.
    """
    for token in tokens:
        written = expression[token.start : token.end + 1]
        if token.token_type.name in ("HEX_STRING", "BIT_STRING") and written[:1] == "0":
            raise DeclarationError(
                f"Spark reads `{written}` as the name of a column, found in {expression!r}",
                fix="write the number in decimal digits; put the name of a column in backticks",
            )
        if token.token_type.name == "NUMBER":
            _check_size(token.text, expression)


def _check_size(text: str, expression: str) -> None:
    digits, _, exponent = text.lower().partition("e")
    if exponent:
        # A double holds it, or not; a text that is no number is refused elsewhere.
        try:
            fits = math.isfinite(float(text))
        except ValueError:
            return
    else:
        fits = sum(character.isdigit() for character in digits.lstrip("0")) <= _MOST_DIGITS
    if not fits:
        raise DeclarationError(
            f"Spark cannot hold the number {text}, found in {expression!r}",
            fix=f"write a number of up to {_MOST_DIGITS} digits, or of up to 1.7e308",
        )
