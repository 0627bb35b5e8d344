"""What is known of a trigger before any record comes: whether it can finish, and whether it can fire again."""

from __future__ import annotations

from typing import assert_never

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


def may_finish(trigger: Trigger, *, takes_late: bool) -> bool:
    """Whether it can finish while its window still takes records, which are then lost (Beam's `may_lose_data`).

    `takes_late`: whether windows have an allowed lateness. Without one they are closed when the watermark passes their
    end, so a trigger that waits for it loses nothing.
    """
    match trigger:
        case AfterCount() | AfterProcessingTime():
            return True
        case AfterWatermark(late=late):
            return takes_late and late is None
        case AfterAny(triggers=triggers):
            return any(may_finish(each, takes_late=takes_late) for each in triggers)
        case OrFinally(one, other):
            return may_finish(one, takes_late=takes_late) or may_finish(other, takes_late=takes_late)
        case AfterAll(triggers=triggers) | AfterEach(triggers=triggers):
            return all(may_finish(each, takes_late=takes_late) for each in triggers)
        case DefaultTrigger() | Repeatedly() | Never():
            return False
        case _:
            assert_never(trigger)


def may_fire_again(trigger: Trigger, *, takes_late: bool) -> bool:
    """Whether a window can fire more than once; then it must be said how its firings relate."""
    match trigger:
        case AfterCount() | AfterProcessingTime() | Never():
            return False
        case DefaultTrigger():
            return takes_late
        case AfterWatermark(early, late):
            return early is not None or (takes_late and late is not None)
        case Repeatedly(one):
            once = isinstance(one, Never) or (
                isinstance(one, AfterWatermark | DefaultTrigger | Repeatedly) and not takes_late
            )
            return not once or may_fire_again(one, takes_late=takes_late)
        case AfterEach(triggers=triggers):
            return len(triggers) > 1 or may_fire_again(triggers[0], takes_late=takes_late)
        case AfterAny(triggers=triggers) | AfterAll(triggers=triggers):
            return any(may_fire_again(each, takes_late=takes_late) for each in triggers)
        case OrFinally(one, other):
            return any(may_fire_again(each, takes_late=takes_late) for each in (one, other))
        case _:
            assert_never(trigger)


def uses_clock(trigger: Trigger) -> bool:
    """Whether it can fire because the clock of batches moves on."""
    match trigger:
        case AfterProcessingTime():
            return True
        case AfterWatermark(early, late):
            return any(each is not None and uses_clock(each) for each in (early, late))
        case Repeatedly(one):
            return uses_clock(one)
        case OrFinally(one, other):
            return uses_clock(one) or uses_clock(other)
        case AfterEach(triggers=triggers) | AfterAny(triggers=triggers) | AfterAll(triggers=triggers):
            return any(map(uses_clock, triggers))
        case DefaultTrigger() | AfterCount() | Never():
            return False
        case _:
            assert_never(trigger)


def uses_watermark(trigger: Trigger) -> bool:
    """Whether it can fire because the watermark passes the end of a window."""
    match trigger:
        case DefaultTrigger() | AfterWatermark():
            return True
        case AfterCount() | AfterProcessingTime() | Never():
            return False
        case Repeatedly(one):
            return uses_watermark(one)
        case OrFinally(one, other):
            return uses_watermark(one) or uses_watermark(other)
        case AfterEach(triggers=triggers) | AfterAny(triggers=triggers) | AfterAll(triggers=triggers):
            return any(map(uses_watermark, triggers))
        case _:
            assert_never(trigger)
