"""Parts of a trigger that never have their turn."""

from __future__ import annotations

from typing import assert_never

from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.trigger_parts import parts_of
from tidemill.core.ordered.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterWatermark,
    DefaultTrigger,
    Never,
    OrFinally,
    Repeatedly,
    Trigger,
)


def check_reachable(trigger: Trigger) -> None:
    """Refuse a trigger with a part that waits for one which is never finished.

    Raises:
        DeclarationError: the text names both.
    """
    if isinstance(trigger, AfterEach):
        for one, following in zip(trigger.triggers, trigger.triggers[1:], strict=False):
            if never_finishes(one):
                raise DeclarationError(
                    f'in AfterEach, "{following}" has its turn when "{one}" is finished, which it never is',
                    fix="leave out what comes after it; AfterAny(a, b) fires when either is ready",
                )
    for part in parts_of(trigger):
        check_reachable(part)


def late_part(trigger: Trigger) -> Trigger | None:
    """A part that fires for late records only; None if there is none."""
    if isinstance(trigger, AfterWatermark) and trigger.late is not None:
        return trigger.late
    return next((late for part in parts_of(trigger) if (late := late_part(part)) is not None), None)


def never_finishes(trigger: Trigger) -> bool:
    """Whether it goes on firing, or waiting, until its window is closed."""
    match trigger:
        case DefaultTrigger() | Never() | Repeatedly():
            return True
        case AfterCount() | AfterProcessingTime():
            return False
        case AfterWatermark(late=late):
            return late is not None
        case AfterEach(triggers=triggers) | AfterAll(triggers=triggers):
            return any(map(never_finishes, triggers))
        case AfterAny(triggers=triggers):
            return all(map(never_finishes, triggers))
        case OrFinally(one, other):
            return never_finishes(one) and never_finishes(other)
        case _:
            assert_never(trigger)
