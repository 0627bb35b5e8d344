"""Refuses arguments by name where Spark takes none, and replacements of `mask` that are no single character."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.contract.constant_texts import written_text
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.functions import ROW_FUNCTIONS

_OF_MASK = ("str", "upperchar", "lowerchar", "digitchar", "otherchar")


def check_named(name: str, arguments: Sequence[exp.Expr], expression: str) -> None:
    """Refuse the arguments of a call that Spark cannot tell apart by their names.

    Raises:
        DeclarationError: the function has no such name, or several values for one; or `mask` replaces a character by a
            text that has more or fewer than one.
    """
    named = [each.this.name.lower() for each in arguments if isinstance(each, exp.Kwarg)]
    if name != "mask":
        if named and name in ROW_FUNCTIONS:
            raise DeclarationError(
                f"`{name}` takes its arguments by their place alone, found `{named[0]}` in {expression!r}: Spark "
                "refuses it",
                fix="leave out the names",
            )
        return
    by_place = [each for each in arguments if not isinstance(each, exp.Kwarg)]
    known = [*_OF_MASK[: len(by_place)], *named]
    if list(arguments[: len(by_place)]) != by_place or len(set(known)) < len(known) or set(known) - set(_OF_MASK):
        raise DeclarationError(
            f"`mask` takes each of str, upperChar, lowerChar, digitChar and otherChar once, and those without a name "
            f"first, in {expression!r}: Spark refuses it",
            fix="write mask(value, lowerChar => 'x')",
        )
    for each in [*by_place[1:], *(given.expression for given in arguments if isinstance(given, exp.Kwarg))]:
        text = written_text(each) if "str" not in named else None
        if text is not None and len(text) != 1:
            raise DeclarationError(
                f"`mask` replaces a character by one character, not by {text!r}, in {expression!r}: Spark refuses it",
                fix="write one character, or NULL to keep what is there",
            )
