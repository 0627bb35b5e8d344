"""Which windows missed records that later ones took: what is told equals what each record says."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.time.missed import MOST, Missed, missed_windows
from tidemill.core.time.panes import EvenPanes
from tidemill.core.time.watermarks import BEGINNING


@given(st.integers(1, 40), st.integers(1, 40), st.integers(-5, 5), st.lists(st.integers(-60, 60)), st.integers(-80, 80))
def test_each_window_missed_what_came_after_it_had_closed(
    size: int, slide: int, offset: int, times: list[int], closed: int
) -> None:
    panes = EvenPanes(size=size, slide=min(slide, size), offset=offset)
    expected, refusals = Counter[int](), Counter[int]()
    for time in times:
        windows = panes.windows_of(time)
        refusing = [window.start for window in windows if window.end <= closed]
        if refusing and len(refusing) < len(windows):
            expected.update(refusing)
            refusals[len(refusing)] += 1
    found = missed_windows(panes, closed, refusals)
    starts = [n for span in found for n in range(panes.number_of(span.first), panes.number_of(span.last) + 1)]
    told = {
        panes.window(n).start: span.records
        for span in found
        for n in range(panes.number_of(span.first), panes.number_of(span.last) + 1)
    }
    assert len(starts) == len(told)
    assert told == expected
    assert list(found) == sorted(found)


def test_nothing_is_told_where_nothing_was_missed_or_too_many_numbers_were() -> None:
    panes = EvenPanes(size=10_000, slide=1)
    assert missed_windows(panes, BEGINNING, {}) == ()
    assert len(missed_windows(panes, 0, dict.fromkeys(range(1, MOST + 1), 1))) == MOST
    assert missed_windows(panes, 0, {MOST + 1: 1, 1: 1}) == ()
    assert missed_windows(panes, 0, {2: 3}) == (Missed(-10_001, -10_000, 3),)
