"""Laws of firing: which windows a move of the watermark closes, and which fire because a batch touched them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.time.panes import EvenPanes
from tidemill.core.time.trigger import Trigger
from tidemill.engine.aggregate.firing import Firing

TIMES = st.integers(-30, 30)


def a_firing(before: int, after: int, *, trigger: Trigger = Trigger.ON_CLOSE, allowed_lateness: int = 0) -> Firing:
    return Firing(trigger=trigger, before=before, after=after, allowed_lateness=allowed_lateness)


def joined(lacking: int, before: int, after: int, trigger: Trigger, lateness: int | None) -> Firing:
    """The firing of a table whose windows lack something when they end at `lacking` or before."""
    found = Firing(trigger=trigger, before=before, after=after, allowed_lateness=lateness)
    return replace(found, before=max(before, lacking), forgotten=lacking)


def on_time(firing: Firing, end: int) -> bool:
    return firing.bounds["_before"] < end <= firing.bounds["_after"]


def again(firing: Firing, end: int) -> bool:
    return firing.bounds["_refused_until"] < end <= firing.bounds["_again_until"]


@given(TIMES, st.lists(TIMES, min_size=2).map(sorted))
def test_a_window_closes_in_exactly_one_move_of_the_watermark(end: int, watermarks: list[int]) -> None:
    closing = [on_time(a_firing(before, after), end) for before, after in pairwise(watermarks)]
    assert sum(closing) == (watermarks[0] < end <= watermarks[-1])


@given(TIMES, TIMES, TIMES, st.integers(0, 30), st.sampled_from(Trigger))
def test_a_window_that_a_batch_touches_fires_on_time_or_again_but_not_twice(
    end: int, before: int, after: int, lateness: int, trigger: Trigger
) -> None:
    firing = a_firing(before, after, trigger=trigger, allowed_lateness=lateness)
    assert not (on_time(firing, end) and again(firing, end))


@given(TIMES, TIMES, st.integers(0, 30), st.sampled_from(Trigger))
def test_a_window_past_its_allowed_lateness_never_fires_again(
    end: int, before: int, lateness: int, trigger: Trigger
) -> None:
    firing = a_firing(before, before, trigger=trigger, allowed_lateness=lateness)
    assert not on_time(firing, end)
    assert again(firing, end) == (end + lateness > before and (trigger is Trigger.ON_UPDATE or end <= before))


@given(TIMES, st.integers(0, 30), st.integers(0, 30))
def test_every_open_window_fires_in_every_batch_that_touches_it_when_updates_are_published(
    before: int, ahead: int, lateness: int
) -> None:
    firing = a_firing(before, before + ahead, trigger=Trigger.ON_UPDATE, allowed_lateness=lateness)
    assert all(again(firing, before + 1 + further) for further in range(30))


@given(TIMES, TIMES, st.integers(0, 30), st.sampled_from(Trigger), st.integers(-60, 60))
def test_every_window_that_may_fire_starts_between_the_bounds(
    before: int, after: int, lateness: int, trigger: Trigger, start: int
) -> None:
    panes = EvenPanes(size=16, slide=1)
    firing = a_firing(before, after, trigger=trigger, allowed_lateness=lateness)
    first, last = firing.starts(panes)
    end = start + panes.size
    assert first <= start <= last or not (on_time(firing, end) or again(firing, end))
    assert all(-(2**63) < edge < 2**63 for edge in (first, last))


@given(
    end=TIMES,
    lacking=TIMES,
    before=TIMES,
    ahead=st.integers(0, 30),
    lateness=st.none() | st.integers(0, 30),
    trigger=st.sampled_from(Trigger),
)
def test_a_table_that_joined_fires_the_windows_that_lack_nothing_as_any_other_and_no_others(
    *, end: int, lacking: int, before: int, ahead: int, lateness: int | None, trigger: Trigger
) -> None:
    whole = Firing(trigger=trigger, before=before, after=before + ahead, allowed_lateness=lateness)
    late = joined(lacking, before, before + ahead, trigger, lateness)
    touched = [on_time(f, end) or again(f, end) for f in (whole, late)]
    assert touched[1] == (touched[0] and end > lacking)
    assert on_time(late, end) == (on_time(whole, end) and end > lacking)
