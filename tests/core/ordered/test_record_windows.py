"""Windows that records define, by hand: one that ends with each record, one that starts after it."""

from __future__ import annotations

import pytest

from support.ordered import Story, of_times
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.firing import Reason
from tidemill.core.ordered.kept import runs_of
from tidemill.core.ordered.machine import machine_of
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.watermarks import END

TEN = RecordWindows("10 us")


def a_story() -> Story:
    """One before any watermark."""
    return Story(TEN, Moment())


def fired(story: Story, times: list[int], watermark: int) -> dict[tuple[int, int], list[int]]:
    """The times in each window that a batch fires."""
    results = story.batch(of_times(*times), Moment(watermark))
    windows = [each.window for each in results]
    assert len(set(windows)) == len(windows)
    return {(w.start, w.end): [story.records[n].time for n in r.records] for r in results if (w := r.window)}


def test_a_record_alone_has_the_window_that_ends_with_it() -> None:
    assert fired(a_story(), [100], END) == {(91, 101): [100]}


def test_each_record_ends_a_window_and_starts_one_after_it() -> None:
    assert fired(a_story(), [100, 105, 120], END) == {
        (91, 101): [100],
        (96, 106): [100, 105],
        (101, 111): [105],
        (111, 121): [120],
    }


def test_a_window_has_records_that_are_less_than_its_size_apart() -> None:
    # [92, 102) has 92 and 101, [91, 101) has no 101; the window that ends with 102 has no 92.
    found = fired(a_story(), [92, 101, 102], END)
    assert (found[92, 102], found[93, 103]) == ([92, 101], [101, 102])


def test_a_window_fires_when_the_watermark_reaches_its_end_and_never_again() -> None:
    story = a_story()
    assert fired(story, [100], 100) == {}
    assert fired(story, [], 101) == {(91, 101): [100]}
    assert fired(story, [103], 110) == {(94, 104): [100, 103]}
    assert fired(story, [], 111) == {(101, 111): [103]}
    assert fired(story, [], END) == {}


def test_a_record_that_comes_late_for_its_own_window_is_in_those_that_are_open() -> None:
    story = a_story()
    assert fired(story, [100], 101) == {(91, 101): [100]}
    assert fired(story, [109], 105) == {}
    # [94, 104), which ends with it, has ended.
    assert fired(story, [103], 111) == {(100, 110): [100, 109, 103], (101, 111): [109, 103]}
    assert story.dropped == []


def test_a_record_that_comes_late_for_its_own_window_starts_one_all_the_same() -> None:
    story = a_story()
    assert fired(story, [105], 106) == {(96, 106): [105]}
    assert fired(story, [97], 108) == {(98, 108): [105]}


def test_a_record_is_late_when_no_window_that_it_could_be_in_is_open() -> None:
    story = a_story()
    story.batch([], Moment(110))
    assert fired(story, [100, 101, 120], END) == {(111, 121): [120]}
    assert story.dropped == [(0, Reason.LATE, Window(91, 101))]


def test_what_is_kept_is_forgotten_when_its_last_window_has_fired() -> None:
    story = a_story()
    fired(story, [100], 110)
    assert story.state is not None
    assert story.wake.watermark == 111
    fired(story, [], 111)
    assert story.state is None


@pytest.mark.parametrize("size", ["0 s", "-1 s", "soon", None, 5])
def test_a_size_is_longer_than_nothing(size: object) -> None:
    with pytest.raises(DeclarationError, match="the size of RecordWindows"):
        RecordWindows(size)  # type: ignore[arg-type]


def test_the_pieces_of_a_window_are_few_runs_of_numbers_however_its_records_come() -> None:
    times = [97, 3, 55, 21, 80, 3, 11]
    folded = machine_of(RecordWindows("1 s")).fold(None, Records(times), Moment(0), Moment(END), 7)
    assert folded.pieces == [12, 7, 10, 9, 11, 7, 8]
    assert max(len(runs_of(each.pieces)) for each in folded.firings) == 1
