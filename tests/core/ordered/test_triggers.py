"""Triggers as values: how they read, what is refused, and which can lose records."""

import pickle

import pytest

from support.beam import Everything
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from tidemill.core.ordered.trigger_laws import may_finish, may_fire_again
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
)

TEXTS = {
    DefaultTrigger(): "when the watermark passes the end, then for each late record",
    AfterWatermark(): "when the watermark passes the end",
    AfterWatermark(early=AfterCount(2), late=AfterCount(1)): (
        "when the watermark passes the end (early: after 2 records; late: after 1 record)"
    ),
    AfterProcessingTime(): "at the end of the batch",
    AfterProcessingTime("60 s"): "1 minute after the first record",
    AfterEach(AfterCount(1), AfterCount(3)): "after 1 record, then after 3 records",
    AfterAny(AfterCount(2), Never()): "any of (after 2 records | when the window is closed)",
    AfterAll(AfterCount(2), AfterWatermark()): "all of (after 2 records & when the watermark passes the end)",
    Repeatedly(AfterCount(2)): "repeatedly after 2 records",
    OrFinally(Repeatedly(AfterCount(2)), AfterCount(5)): "repeatedly after 2 records, or finally after 5 records",
}


@pytest.mark.parametrize(("trigger", "text"), TEXTS.items(), ids=map(repr, TEXTS))
def test_triggers_are_values_that_read_as_sentences(trigger, text) -> None:
    assert str(trigger) == text
    assert pickle.loads(pickle.dumps(trigger)) == trigger
    for name in trigger.__match_args__:
        with pytest.raises(AttributeError):
            setattr(trigger, name, 5)


def test_triggers_of_the_same_parts_differ_by_kind() -> None:
    assert AfterAny(AfterCount(1)) != AfterAll(AfterCount(1))
    assert repr(AfterAny(AfterCount(1), Never())) == "AfterAny(AfterCount(count=1), Never())"


@pytest.mark.parametrize(
    ("trigger", "finishes", "finishes_with_lateness"),
    [
        (DefaultTrigger(), False, False),
        (Never(), False, False),
        (AfterCount(2), True, True),
        (AfterProcessingTime("1 s"), True, True),
        (Repeatedly(AfterCount(2)), False, False),
        (AfterWatermark(), False, True),
        (AfterWatermark(early=AfterCount(1)), False, True),
        (AfterWatermark(late=AfterCount(1)), False, False),
        (AfterAny(AfterCount(2), AfterWatermark()), True, True),
        (AfterAny(Never(), AfterWatermark()), False, True),
        (AfterAll(AfterCount(2), AfterWatermark()), False, True),
        (AfterAll(AfterCount(2), AfterCount(3)), True, True),
        (AfterEach(AfterCount(2), Repeatedly(AfterCount(1))), False, False),
        (AfterEach(AfterCount(2), AfterCount(1)), True, True),
        (OrFinally(Repeatedly(AfterCount(2)), AfterWatermark()), False, True),
        (OrFinally(Repeatedly(AfterCount(2)), AfterCount(9)), True, True),
    ],
    ids=str,
)
def test_row_35_triggers_that_can_finish_are_refused(trigger, finishes, finishes_with_lateness) -> None:
    for lateness, expected in (("0 s", finishes), ("1 s", finishes_with_lateness)):
        assert may_finish(trigger, takes_late=lateness != "0 s") is expected
        if expected:
            with pytest.raises(DeclarationError, match=r"records: those are lost(.|\n)*accept_loss=True"):
                EventWindows(Everything(), trigger, lateness, "discarding")
        EventWindows(Everything(), trigger, lateness, "discarding", accept_loss=expected)


@pytest.mark.parametrize(
    ("trigger", "again", "again_with_lateness"),
    [
        (DefaultTrigger(), False, True),
        (AfterWatermark(), False, False),
        (AfterWatermark(late=AfterCount(1)), False, True),
        (AfterWatermark(early=AfterCount(1)), True, True),
        (Repeatedly(AfterCount(2)), True, True),
        (Repeatedly(AfterWatermark()), False, True),
        (Repeatedly(Never()), False, False),
        (AfterAny(AfterCount(2), AfterWatermark()), False, False),
        (AfterEach(AfterCount(2), AfterWatermark()), True, True),
        (AfterAll(AfterCount(2), Repeatedly(AfterCount(1))), True, True),
        (OrFinally(Never(), AfterCount(1)), False, False),
    ],
    ids=str,
)
def test_row_52_it_must_be_said_how_several_firings_relate(trigger, again, again_with_lateness) -> None:
    for lateness, expected in (("0 s", again), ("1 s", again_with_lateness)):
        assert may_fire_again(trigger, takes_late=lateness != "0 s") is expected
        if expected:
            with pytest.raises(DeclarationError, match=r"how its firings relate(.|\n)*say accumulation"):
                EventWindows(Everything(), trigger, lateness, accept_loss=True)
        else:
            declared = EventWindows(Everything(), trigger, lateness, accept_loss=True)
            assert declared.accumulation is Accumulation.ACCUMULATING


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: AfterCount(0), "AfterCount needs a whole number of at least 1, found 0"),
        (lambda: AfterProcessingTime("-1 s"), "must not be negative"),
        (AfterAny, "AfterAny needs at least one trigger"),
        (lambda: AfterEach(AfterCount(1), 5), "not a trigger: 5"),  # type: ignore[arg-type]
        (lambda: Repeatedly("daily"), "not a trigger: 'daily'"),  # type: ignore[arg-type]
        (lambda: AfterWatermark(early=3), "not a trigger: 3"),  # type: ignore[arg-type]
        (lambda: EventWindows(Everything(), 3), "not a trigger: 3"),  # type: ignore[arg-type]
        (lambda: EventWindows(Everything(), accumulation="adding"), "accumulation is one of .* found 'adding'"),
        (lambda: EventWindows(Everything(), allowed_lateness="-1 s"), "allowed_lateness must not be negative"),
        (
            lambda: EventWindows(Everything(), accumulation="discarding", evictor=CountEvictor(2, after=True)),
            "nothing to evict after the firing",
        ),
        (lambda: Sessions("0 s"), "gap of sessions must be longer"),
        (lambda: CountEvictor(0), "CountEvictor needs"),
        (lambda: TimeEvictor("0 s"), "longer than nothing"),
        (lambda: DeltaEvictor("x", "2"), "threshold of a DeltaEvictor is a number"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(make, says) -> None:
    with pytest.raises(DeclarationError, match=says):
        make()


def test_windows_and_evictors_read_as_they_are_written() -> None:
    assert str(Sessions("600 s")) == "sessions with a gap of 10 minutes"
    assert str(CountEvictor(3)) == "keep the last 3"
    assert str(TimeEvictor("60 s", after=True)) == "keep the last 1 minute, after the firing"
    assert str(DeltaEvictor("x", 2)) == "evict where the last x is 2 or more above"
