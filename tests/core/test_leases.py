"""Whether a holder works: one look at its lease, whatever the clocks of machines say."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tidemill.core.protocol.codec import from_json, to_json
from tidemill.core.protocol.leases import Beat, Clock, Holder, beat_every, holder_of

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
TAKEOVER = 15 * MINUTE
BEAT = Beat(number=7, every=10.0, clock=Clock(kernel="k", seconds=5_000.0))


def look(age: timedelta, *, kernel: str = "another", seconds: float = 0.0, takeover: timedelta = TAKEOVER) -> Holder:
    return holder_of(BEAT, age=age, here=Clock(kernel=kernel, seconds=seconds), takeover_after=takeover)


@pytest.mark.parametrize(
    ("silent", "expected"), [(0, Holder.WORKS), (899, Holder.WORKS), (901, Holder.STOPPED), (9_999, Holder.STOPPED)]
)
@pytest.mark.parametrize("age", [-HOUR, 0 * SECOND, HOUR, 1_000 * HOUR])
def test_on_one_kernel_its_monotonic_clock_decides_whatever_the_stores_clock_does(
    silent: float, expected: Holder, age: timedelta
) -> None:
    assert look(age, kernel="k", seconds=5_000.0 + silent) is expected


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0 * SECOND, Holder.WORKS),
        (15 * MINUTE, Holder.WORKS),
        (15 * MINUTE + SECOND, Holder.DOUBTFUL),
        (-40 * SECOND, Holder.WORKS),
        (-41 * SECOND, Holder.DOUBTFUL),
        (-HOUR, Holder.DOUBTFUL),
    ],
)
def test_from_another_machine_the_stores_clock_decides_only_that_a_holder_works(
    age: timedelta, expected: Holder
) -> None:
    assert look(age, seconds=5_000.0) is expected


def test_kernels_without_a_name_are_never_the_same() -> None:
    nameless = Beat(number=1, every=10.0, clock=Clock(kernel="", seconds=0.0))
    here = Clock(kernel="", seconds=1e9)
    assert holder_of(nameless, age=0 * SECOND, here=here, takeover_after=TAKEOVER) is Holder.WORKS


def test_a_holder_has_stopped_only_after_it_missed_some_beats() -> None:
    assert look(39 * SECOND, takeover=SECOND) is Holder.WORKS
    assert look(41 * SECOND, takeover=SECOND) is Holder.DOUBTFUL


@pytest.mark.parametrize(("takeover", "every"), [(HOUR, 10 * SECOND), (20 * SECOND, 5 * SECOND), (SECOND, SECOND / 4)])
def test_beats_come_several_times_before_a_takeover(takeover: timedelta, every: timedelta) -> None:
    assert beat_every(takeover) == every


def test_a_beat_is_read_as_it_was_written() -> None:
    assert from_json(Beat, to_json(BEAT)) == BEAT
