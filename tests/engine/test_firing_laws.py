"""Laws of firing: which windows a move of the watermark closes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.operators import Trigger
from tidemill.engine.firing import Firing

TIMES = st.integers(-30, 30)


def a_firing(before: int, after: int, *, trigger: Trigger = Trigger.ON_CLOSE, allowed_lateness: int = 0) -> Firing:
    return Firing(trigger=trigger, before=before, after=after, allowed_lateness=allowed_lateness)


@given(TIMES, st.lists(TIMES, min_size=2).map(sorted))
def test_a_window_closes_in_exactly_one_move_of_the_watermark(end: int, watermarks: list[int]) -> None:
    closing = [a_firing(before, after).closes(end) for before, after in pairwise(watermarks)]
    assert sum(closing) == (watermarks[0] < end <= watermarks[-1])


@given(TIMES, TIMES, TIMES, st.integers(0, 30))
def test_a_window_that_a_batch_touches_fires_on_time_or_again_but_not_twice(
    end: int, before: int, after: int, lateness: int
) -> None:
    firing = a_firing(before, after, allowed_lateness=lateness)
    assert not (firing.closes(end) and firing.fires_when_touched(end))


@given(TIMES, TIMES, st.integers(0, 30), st.sampled_from(Trigger))
def test_a_window_past_its_allowed_lateness_never_fires_again(
    end: int, before: int, lateness: int, trigger: Trigger
) -> None:
    firing = a_firing(before, before, trigger=trigger, allowed_lateness=lateness)
    assert not firing.closes(end)
    if end + lateness <= before:
        assert not firing.fires_when_touched(end)
