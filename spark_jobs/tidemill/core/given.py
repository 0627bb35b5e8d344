"""Values that a declaration is given: each is of its kind, or an error says what was expected."""

from __future__ import annotations

from tidemill.core.errors import DeclarationError, shown


def check_text(value: object, what: str, example: str, *, empty: bool = False) -> None:
    """Refuse what is no text; and one without a character, unless it may be empty.

    Raises:
        DeclarationError: the text names `what` it is, and has the example.
    """
    if not isinstance(value, str) or not (empty or value.strip()):
        raise DeclarationError(f"{what} is a text, found {shown(value)}", fix=f"write for example {example}")


def check_flag(value: object, what: str) -> None:
    """Refuse what is neither True nor False: Python takes a text such as "no" for true.

    Raises:
        DeclarationError: the text names `what` it is.
    """
    if not isinstance(value, bool):
        raise DeclarationError(
            f"{what} is True or False, found {shown(value)}", fix=f"write {what}=True, or leave {what} out"
        )


def check_whole(value: object, what: str, least: int, most: int) -> None:
    """Refuse what is no whole number within these bounds.

    Raises:
        DeclarationError: the text names `what` it is, and the bounds.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise DeclarationError(
            f"{what} is a whole number from {least:,} to {most:,}, found {shown(value)}",
            fix="write a number within these bounds",
        )
