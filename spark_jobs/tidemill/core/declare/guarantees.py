"""What a pipeline promises when something fails: the choices that a declaration has."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from tidemill.core.errors import DeclarationError

_Choice = TypeVar("_Choice", bound=StrEnum)


class Guarantee(StrEnum):
    """How often a record counts when something fails.

    With at least once, a retry may publish rows again where it costs extra to prevent that. Delta's transactions
    prevent it at no extra cost.
    """

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class OnLoss(StrEnum):
    """What happens when retention has deleted offsets before they were read."""

    REFUSE = "refuse"
    SKIP = "skip"


def one_of(kind: type[_Choice], value: str, what: str) -> _Choice:
    """The member of `kind` with this value; DeclarationError when there is none."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(f'"{each.value}"' for each in kind)
        raise DeclarationError(f"{what} is one of {known}, found {value!r}") from None
