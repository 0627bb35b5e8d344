"""Valid names in a declaration, and which objects have which steps."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

from tidemill.core.errors import DeclarationError
from tidemill.core.given import check_text

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")

LONGEST_COLUMN = 128
"""The most characters in the name of a column that a declaration makes."""

STEPS: Mapping[str, str] = {
    "read": 'pipeline.read("topic", contract="...")',
    "filter": "a stream of rows, before .key_by(...) or .window(...), or on .aggregate(...)",
    "with_columns": "a stream of rows, before .key_by(...) or .window(...), or on .aggregate(...)",
    "select": "a stream of rows, before .key_by(...) or .window(...), or on .aggregate(...)",
    "union": "a stream of rows, before .key_by(...) or .window(...)",
    "split": "a stream of rows, before .key_by(...) or .window(...)",
    "discard": "a stream of rows, before .key_by(...) or .window(...)",
    "key_by": "a stream of rows, before .window(...)",
    "window": "a stream of rows, or .key_by(...)",
    "aggregate": ".window(...), or a stream of rows",
    "publish": ".aggregate(...), or a stream of rows",
}
"""For each step of a declaration, the objects that have it, as text for errors."""


class UnknownStep(DeclarationError, AttributeError):
    """A step that this stream does not have. It is an AttributeError, too, so that `hasattr` works."""


def no_step(name: str, what: str, here: tuple[str, ...]) -> NoReturn:
    """Refuse a step that `what` does not have; `here` are those that it has.

    Raises:
        UnknownStep: the text says where the step belongs, or which step was probably meant.
        AttributeError: the name begins with an underscore: Python asks for such names, users do not.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    said = f"{what} has no step `{name}`; it has: {', '.join(here)}"
    if name in STEPS:
        raise UnknownStep(said, fix=f"call .{name}(...) on {STEPS[name]}")
    close = difflib.get_close_matches(name, [*here, *STEPS], n=1)
    raise UnknownStep(said, fix=f"did you mean .{close[0]}(...)?" if close else "")


def checked_name(name: str, what: str) -> str:
    """Return `name`, if it can name a thing of this kind: a pipeline, an operator, a table.

    Raises:
        DeclarationError: it cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(
            f"not a name for {what}: {name!r}",
            fix="use at most 63 lower-case letters, digits and underscores, a letter first",
        )
    return name


def checked_column(name: str) -> str:
    """Return `name`, if a declaration can use it for a column: a Python identifier without an underscore in front.

    Raises:
        DeclarationError: it cannot.
    """
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_") or len(name) > LONGEST_COLUMN:
        raise DeclarationError(
            f"not a name for a column: {name!r}",
            fix=f"use at most {LONGEST_COLUMN} letters, digits and underscores, a letter first",
        )
    return name


def checked_contract(contract: str | None, what: str) -> str:
    """Return `contract`; nothing is read or published without a contract.

    Raises:
        DeclarationError: it is empty or None, or no text.
    """
    if not contract:
        raise DeclarationError(f"`{what}` has no contract", fix='add contract="...", a file of data_contracts')
    check_text(contract, f"the contract of `{what}`", 'contract="orders", for a file orders.odcs.yaml')
    return contract


@contextmanager
def told(where: str) -> Iterator[None]:
    """Put the place before the text of a DeclarationError that is raised inside."""
    try:
        yield
    except DeclarationError as error:
        raise DeclarationError(f"{where}: {error.message}", fix=error.fix) from None
