"""What a trigger is made of: other triggers, and not too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args

from tidemill.core.errors import DeclarationError, shown

MOST_PARTS = 100
"""The most triggers that one is made of: more are a mistake, and Python cannot go into a thousand that are nested."""


def check_triggers(found: Sequence[object], kinds: UnionType) -> None:
    """Refuse what is no trigger, and a trigger of too many parts.

    Raises:
        DeclarationError: the text shows what was found, or says how many parts there are.
    """
    parts = 1
    for each in found:
        if not isinstance(each, kinds):
            raise no_trigger(each, kinds)
        parts += _size(each)
    if parts > MOST_PARTS:
        raise DeclarationError(
            f"a trigger is made of at most {MOST_PARTS} triggers, and this one of {parts:,}",
            fix="leave some out; Repeatedly(AfterCount(100)) repeats one without writing it again",
        )


def no_trigger(found: object, kinds: UnionType) -> DeclarationError:
    """The error for what is no trigger; `kinds` are all that are."""
    names = {kind.__name__ for kind in get_args(kinds)}
    if isinstance(found, type) and found in get_args(kinds):
        return DeclarationError(
            f"{found.__name__} is a kind of trigger, and no trigger yet",
            fix=f"write {found.__name__}(...), with what it takes in the brackets",
        )
    if isinstance(found, str) and found.split("(")[0].strip() in names:
        return DeclarationError(f"not a trigger, but a text: {shown(found)}", fix="leave out the quotation marks")
    if isinstance(found, list | tuple):
        return DeclarationError(
            f"not a trigger, but several in brackets: {shown(found)}",
            fix="write them one after the other, without the brackets: AfterAny(AfterCount(100), AfterWatermark())",
        )
    return DeclarationError(f"not a trigger: {shown(found)}", fix="write for example AfterCount(100)")


def _size(trigger: Any) -> int:
    """How many triggers it is made of, itself included. Its parts were counted when they were made."""
    return 1 + sum(map(_size, parts_of(trigger)))


def parts_of(trigger: Any) -> list[Any]:
    """The triggers that it is made of directly."""
    values = [getattr(trigger, field.name) for field in fields(trigger)]
    parts = [each for value in values for each in (value if isinstance(value, tuple) else (value,))]
    return [each for each in parts if is_dataclass(each)]
