"""Numbers that Spark reads in another way than the parser, or not at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tidemill.core.errors import DeclarationError

if TYPE_CHECKING:
    from sqlglot import Token

_MOST_DIGITS = 38
_FLOAT = 3.4028235e38
_SUFFIXES: Mapping[str, tuple[str, float, float]] = {
    "Y": ("byte", -(2**7), 2**7 - 1),
    "S": ("short", -(2**15), 2**15 - 1),
    "L": ("bigint", -(2**63), 2**63 - 1),
    "F": ("float", -_FLOAT, _FLOAT),
}
"""The type of a number with a suffix, its least value and its greatest."""


def check_numbers(tokens: Iterable[Token], expression: str) -> None:
    """Refuse numbers that are none to Spark.

    Raises:
        DeclarationError: a number is written with 0x or 0b, leaves a double, or has more than 38 digits.
    """
    tokens = list(tokens)
    for before, token, suffix in zip([None, *tokens], tokens, [*tokens[2:], None, None], strict=False):
        written = expression[token.start : token.end + 1]
        if token.token_type.name in ("HEX_STRING", "BIT_STRING") and written[:1] == "0":
            raise DeclarationError(
                f"Spark reads `{written}` as the name of a column, found in {expression!r}",
                fix="write the number in decimal digits; put the name of a column in backticks",
            )
        if token.token_type.name == "NUMBER":
            _check_size(token.text, expression)
            if suffix is not None and suffix.end == token.end:
                _check_suffix(written, token.text, suffix.text.upper(), before, expression)


def _check_suffix(written: str, text: str, suffix: str, before: Token | None, expression: str) -> None:
    """Refuse a number that leaves the type of its suffix, as 500Y does. `before` may be a sign."""
    name, least, most = _SUFFIXES.get(suffix, ("", -math.inf, math.inf))
    try:
        # A float would round a long.
        number = int(text) if text.isdigit() else float(text)
    except ValueError:
        return
    negative = before is not None and before.text == "-"
    if number > (-least if negative else most):
        raise DeclarationError(
            f"`{written}` is no number that Spark has: a {name} is a number from {least} to {most}, "
            f"found in {expression!r}",
            fix=f"write {text} without {suffix}",
        )


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
