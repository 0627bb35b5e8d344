"""Windows of event time with triggers: rows 32, 34, 35, 44 and 46 to 51, and what happens at their edges."""

import pytest

from support.beam import Everything
from support.ordered import Record, Story, of_times, of_values, shown, times_of
from tidemill.core.ordered.assigners import Assigner, Sessions
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor
from tidemill.core.ordered.firing import Reason, Wake
from tidemill.core.ordered.records import Moment
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
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END
from tidemill.core.time.windows import Sliding, Tumbling

EARLY, ON_TIME, LATE = Timing.EARLY, Timing.ON_TIME, Timing.LATE
TEN = Tumbling("10 us").panes
MODES = ["discarding", "accumulating", "accumulating_and_retracting"]


def told(
    trigger: Trigger,
    *,
    windows: Assigner | Sessions = TEN,
    lateness: int = 0,
    mode: str = "discarding",
    evictor: Evictor | None = None,
    empty_on_time: bool = True,
) -> Story:
    return Story(
        EventWindows(windows, trigger, f"{lateness} us", mode, evictor, empty_on_time=empty_on_time, accept_loss=True)
    )


def facts(story: Story) -> list[tuple[Timing, int, int, bool]]:
    return [(each.timing, each.index, each.nonspeculative, each.is_last) for each in story.results]


@pytest.mark.parametrize(
    ("times", "windows"),
    [
        pytest.param((0, 9_999), [(0, 19_999)], id="row 32 below the gap"),
        pytest.param((0, 10_000), [(0, 20_000)], id="row 32 the gap itself"),
        pytest.param((10_000, 0), [(0, 20_000)], id="row 32 the gap itself, backwards"),
        pytest.param((0, 10_001), [(0, 10_000), (10_001, 20_001)], id="row 32 above the gap"),
        pytest.param((-5, -10_005, 3), [(-10_005, 10_003)], id="row 32 before 1970"),
    ],
)
def test_sessions(times, windows) -> None:
    story = told(DefaultTrigger(), windows=Sessions("10 ms"))
    story.batch(of_times(*times), Moment(END))
    assert [each.window for each in story.results] == [Window(*each) for each in windows]


@pytest.mark.parametrize("mode", MODES)
def test_row_32_a_record_merges_two_sessions_that_were_published(mode) -> None:
    story = told(Repeatedly(AfterCount(1)), windows=Sessions("10 us"), mode=mode)
    story.batch(of_times(0, 15))
    merged = story.batch(of_times(8))[0]
    assert merged.window == Window(0, 25)
    assert merged.replaces == (Window(0, 10), Window(15, 25))
    assert merged.records == ((2,) if mode == "discarding" else (0, 1, 2))
    retracted = ((Window(0, 10), (0,)), (Window(15, 25), (1,)))
    assert merged.retracts == (retracted if mode == MODES[2] else ())
    again = story.batch(of_times(9))[0]
    assert again.retracts == (((Window(0, 25), (0, 1, 2)),) if mode == MODES[2] else ())
    assert (again.replaces, again.index) == ((), 2)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("evictor", "values", "kept"),
    [
        pytest.param(CountEvictor, (5, 1, 4, 2), (1, 2, 3), id="row 34 last 3"),
        pytest.param(TimeEvictor, (0, 25, 14, 15, 24), (1, 3, 4), id="row 34 older than the newest - 10"),
        pytest.param(DeltaEvictor, (1, 2, 3, 4), (2, 3), id="row 34 delta"),
        pytest.param(DeltaEvictor, (9, 2, 3, 4), (0, 2, 3), id="row 34 delta, greater values stay"),
    ],
)
def test_evictors(evictor, values, kept, after) -> None:
    made = {CountEvictor: (3,), TimeEvictor: ("10 us",), DeltaEvictor: ("x", 2)}[evictor]
    story = told(
        Repeatedly(AfterCount(len(values))),
        windows=Everything(),
        mode="accumulating",
        evictor=evictor(*made, after=after),
    )
    first = story.batch(of_values(*values))[0]
    assert first.records == (tuple(range(len(values))) if after else kept)
    second = story.batch([Record(values[-1], values[-1])] * len(values))[0]
    assert set(second.records) & set(range(len(values))) == (set(kept) if after else set(second.records) & set(kept))


def test_an_evictor_counts_records_of_merged_sessions_in_the_order_of_their_arrival() -> None:
    story = told(DefaultTrigger(), windows=Sessions("60 us"), mode="accumulating", evictor=CountEvictor(2))
    for times in ((0, 100), (1,), (50,)):
        story.batch(of_times(*times), Moment())
    story.batch([], Moment(200))
    assert [each.records for each in story.results] == [(2, 3)]


@pytest.mark.parametrize("declared", [Sliding("4 us", "2 us").panes, Sessions("1 us")])
def test_windows_that_take_records_in_turn_have_pieces_that_follow_one_another(declared: Assigner | Sessions) -> None:
    story = told(Repeatedly(AfterCount(1)), windows=declared, mode="accumulating")
    for number in range(40):
        story.batch(of_times(2 + 5 * (number % 2)), Moment())
    assert story.state is not None
    assert {len(window["earlier"]) for window in story.state["open"]} == {1}
    assert {window["index"] for window in story.state["open"]} == {20}


def test_row_34_evicted_records_do_not_come_back() -> None:
    story = told(Repeatedly(AfterCount(1)), windows=Everything(), mode="accumulating", evictor=CountEvictor(2))
    story.batch(of_values(1, 2, 3))
    story.batch(of_values(4))
    assert shown(story) == [[1], [1, 2], [2, 3], [3, 4]]


def test_row_34_a_record_that_a_delta_cannot_compare_is_rejected() -> None:
    for windows in (Everything(), Sessions("10 us")):
        story = told(Repeatedly(AfterCount(1)), windows=windows, evictor=DeltaEvictor("x", 2))
        story.batch([Record(1, None), Record(1, 5)])
        assert story.dropped == [(0, Reason.NO_VALUE, None)]
        assert shown(story) == [[5]]


def test_row_35_a_finished_trigger_drops_what_comes_later() -> None:
    story = told(AfterAny(AfterCount(2), AfterWatermark()))
    story.batch(of_times(1, 2, 3), Moment(5))
    assert times_of(story) == [[1, 2]]
    assert story.dropped == [(2, Reason.FINISHED, Window(0, 10))]
    assert facts(story) == [(EARLY, 0, -1, True)]
    assert story.batch([], Moment(10)) == []
    assert story.state is None


def test_row_44_late_records_until_the_allowed_lateness() -> None:
    story = told(AfterWatermark(early=AfterCount(3), late=AfterCount(1)), lateness=20, mode="accumulating")
    story.batch(of_times(1, 2, 10, 11, 80, 81), Moment(100))
    assert [each.timing for each in story.results] == [ON_TIME] * 3
    assert [each.is_last for each in story.results] == [True, True, False]
    story.batch(of_times(7, 8, 17, 18))
    assert [drop[1] for drop in story.dropped] == [Reason.LATE] * 4
    late = story.batch(of_times(82))
    assert times_of(story, late) == [[80, 81, 82]]
    assert (late[0].timing, late[0].is_last) == (LATE, False)


def test_row_44_closing_and_late_drop_agree_at_the_edge() -> None:
    for watermark, kept in ((29, True), (30, False)):
        story = told(DefaultTrigger(), lateness=20, mode="accumulating")
        story.batch(of_times(5), Moment(watermark))
        assert (story.state is not None) is kept
        story.batch(of_times(6))
        assert (story.dropped == []) is kept


def test_rows_46_and_48_of_sessions_with_early_and_late_firings() -> None:
    trigger = AfterWatermark(early=AfterCount(2), late=AfterCount(3))
    story = told(trigger, windows=Sessions("10 us"), lateness=100, mode="accumulating")
    for times in ([1, 2], [3], [4], [5]):
        story.batch(of_times(*times))
    assert times_of(story) == [[1, 2], [1, 2, 3, 4]]
    story.batch([], Moment(100))
    assert story.batch(of_times(1)) == []
    story.batch(of_times(3, 4))
    assert times_of(story)[2:] == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 1, 3, 4]]
    assert facts(story) == [(EARLY, 0, -1, False), (EARLY, 1, -1, False), (ON_TIME, 2, 0, False), (LATE, 3, 1, False)]


def test_row_46_a_firing_with_each_batch_before_the_end() -> None:
    story = told(AfterWatermark(early=AfterProcessingTime()), mode="accumulating")
    for records in ([1, 2, 3], [], [4, 5]):
        story.batch(of_times(*records), Moment(0, 7))
    assert times_of(story) == [[1, 2, 3], [1, 2, 3, 4, 5]]
    assert [each.position for each in story.results] == [None, None]


@pytest.mark.parametrize("empty_on_time", [True, False])
def test_row_47_one_firing_on_time_also_when_empty(empty_on_time) -> None:
    story = told(AfterWatermark(early=AfterCount(2)), empty_on_time=empty_on_time)
    story.batch(of_times(1, 2, 4, 14, 5, 18, 6))
    story.batch([], Moment(100))
    first, second = [each for each in story.results if each.window == Window(0, 10)], story.results[-1]
    assert times_of(story, first) == [[1, 2], [4, 5], [6]]
    assert (first[-1].index, first[-1].nonspeculative, first[-1].is_last) == (2, 0, True)
    if empty_on_time:
        assert (second.window, second.records, second.index, second.is_last) == (Window(10, 20), (), 1, True)
    assert sum(each.timing is ON_TIME for each in story.results) == 1 + empty_on_time


COUNTED = (5, 8, 3, 15, 19, 23, 9, 13, 10)


@pytest.mark.parametrize(
    ("mode", "sums"),
    [
        pytest.param("discarding", [16, 57, 32], id="row 49 discarding"),
        pytest.param("accumulating", [16, 73, 105], id="row 50 accumulating"),
        pytest.param("accumulating_and_retracting", [16, 73, 105], id="row 51 retracting"),
    ],
)
def test_how_firings_relate(mode, sums) -> None:
    story = told(Repeatedly(AfterCount(3)), windows=Everything(), mode=mode)
    for value in COUNTED:
        story.batch(of_values(value))
    assert [sum(each) for each in shown(story)] == sums
    taken_back = [sum(COUNTED[i] for _, records in each.retracts for i in records) for each in story.results]
    assert taken_back == ([0, 16, 73] if mode == MODES[2] else [0, 0, 0])


def test_row_51_old_values_are_taken_back() -> None:
    trigger = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
    story = told(trigger, lateness=50, mode="accumulating_and_retracting")
    story.batch([Record(1, 3), Record(2, 4), Record(3, 8)], Moment(10))
    story.batch([Record(1, 5)])
    total, told_as = 0.0, []
    for each, now in zip(story.results, shown(story), strict=True):
        old = sum(story.records[i].value or 0 for _, records in each.retracts for i in records)
        total += sum(now) - old
        told_as.append((-old, sum(now)))
    assert told_as == [(0, 7), (-7, 15), (-15, 20)]
    assert total == 20


def test_late_records_of_a_window_that_nobody_saw_before_fire_at_once() -> None:
    story = told(AfterWatermark(late=AfterCount(2)), lateness=50)
    story.batch([], Moment(20))
    assert times_of(story, story.batch(of_times(1, 2, 3))) == [[1], [2, 3]]
    assert facts(story) == [(LATE, 0, 0, False), (LATE, 1, 1, False)]


@pytest.mark.parametrize("trigger", [Never(), Repeatedly(AfterCount(9)), AfterAll(AfterCount(9), Never())], ids=str)
def test_a_window_that_closes_fires_what_its_trigger_did_not(trigger) -> None:
    story = told(trigger, lateness=5)
    assert story.batch(of_times(1, 2), Moment(12)) == []
    assert story.wake == Wake(watermark=15)
    assert times_of(story, story.batch([], Moment(15))) == [[1, 2]]
    assert facts(story) == [(LATE, 0, 0, True)]


def test_a_window_that_closes_without_new_records_is_silent() -> None:
    story = told(DefaultTrigger(), lateness=5)
    story.batch(of_times(1), Moment(10))
    assert story.wake == Wake(watermark=15)
    assert story.batch([], Moment(15)) == []
    assert story.state is None


def test_the_end_of_the_log_closes_all_windows_whatever_lateness() -> None:
    story = told(DefaultTrigger(), windows=Everything(), lateness=99)
    assert story.batch(of_times(-(2**62), 2**62), Moment(5)) == []
    assert story.wake == Wake(watermark=END)
    assert [each.is_last for each in story.batch([], Moment(END))] == [True]
    assert story.state is None


def test_a_record_is_late_for_some_of_its_windows_only() -> None:
    story = told(DefaultTrigger(), windows=Sliding("3 us", "1 us").panes)
    story.batch([], Moment(3))
    story.batch(of_times(2, 0), Moment(END))
    assert [drop for drop in story.dropped if drop[0] == 0] == [(0, Reason.LATE, Window(0, 3))]
    assert [each.window for each in story.results] == [Window(1, 4), Window(2, 5)]
    assert [drop[2] for drop in story.dropped if drop[0] == 1] == [Window(-2, 1), Window(-1, 2), Window(0, 3)]


def test_a_delay_counts_from_the_first_record_by_the_clock_of_batches() -> None:
    story = told(Repeatedly(AfterProcessingTime("10 us")), windows=Everything(), mode="accumulating")
    story.batch([], Moment(clock=100))
    assert story.batch(of_times(1), Moment(clock=100)) == []
    assert story.batch(of_times(2), Moment(clock=109)) == []
    assert story.wake == Wake(END, 110)
    assert times_of(story, story.batch([], Moment(clock=110))) == [[1, 2]]
    assert story.batch([], Moment(clock=500)) == []
    assert story.wake == Wake(END, None)


@pytest.mark.parametrize(
    ("trigger", "fires", "drops"),
    [
        (AfterEach(AfterCount(1), AfterCount(3), Repeatedly(AfterCount(2))), [[0], [1, 2, 3], [4, 5], [6, 7]], 0),
        (AfterEach(AfterCount(1), AfterCount(3)), [[0], [1, 2, 3]], 4),
        (AfterAll(AfterCount(2), AfterCount(3)), [[0, 1, 2]], 5),
        (AfterAny(AfterCount(2), AfterCount(3)), [[0, 1]], 6),
        (OrFinally(Repeatedly(AfterCount(2)), AfterCount(5)), [[0, 1], [2, 3], [4]], 3),
        (Repeatedly(AfterAny(AfterCount(4), AfterWatermark())), [[0, 1, 2, 3], [4, 5, 6, 7]], 0),
    ],
    ids=str,
)
def test_triggers_made_of_others(trigger, fires, drops) -> None:
    for size in (1, 3, 8):
        story = told(trigger, windows=Everything())
        for start in range(0, 8, size):
            story.batch(of_times(*range(start, min(start + size, 8))))
        assert times_of(story) == fires
        assert [drop[1] for drop in story.dropped] == [Reason.FINISHED] * drops


def test_a_batch_in_which_no_time_passes_leaves_triggers_alone() -> None:
    for cut in (False, True):
        story = told(AfterWatermark(late=AfterWatermark(late=Never())), lateness=50)
        story.batch([], Moment(20))
        story.batch(of_times(1))
        if cut:
            story.batch([])
        assert times_of(story, story.batch(of_times(2, 3))) == [[2]]


def test_a_part_of_a_trigger_that_was_not_ready_did_not_fire() -> None:
    both = AfterAll(AfterWatermark(), AfterCount(2))
    story = told(OrFinally(AfterWatermark(late=AfterCount(2)), both), lateness=50)
    story.batch(of_times(1), Moment(10))
    story.batch(of_times(2))
    assert facts(story) == [(ON_TIME, 0, 0, False), (LATE, 1, 1, True)]


def test_counts_of_merged_sessions_are_added() -> None:
    story = told(Repeatedly(AfterCount(5)), windows=Sessions("10 us"))
    assert story.batch(of_times(0, 1, 20, 21)) == []
    assert times_of(story, story.batch(of_times(11))) == [[0, 1, 20, 21, 11]]


def test_merged_sessions_are_where_the_furthest_was() -> None:
    story = told(AfterEach(AfterCount(2), AfterCount(3)), windows=Sessions("10 us"))
    story.batch(of_times(0, 1, 20))
    assert times_of(story) == [[0, 1]]
    assert times_of(story, story.batch(of_times(11, 12, 13))) == [[20, 11, 12, 13]]


def test_merged_sessions_are_late_only_if_all_of_them_were() -> None:
    trigger = AfterAll(AfterWatermark(late=AfterCount(5)), AfterCount(2))
    story = told(trigger, windows=Sessions("10 us"), lateness=100)
    story.batch([], Moment(50))
    story.batch(of_times(0, 1, 20))
    assert times_of(story) == [[0, 1]]
    assert times_of(story, story.batch(of_times(11))) == [[20, 11]]


def test_the_earliest_delay_of_merged_sessions_stays() -> None:
    story = told(Repeatedly(AfterProcessingTime("10 us")), windows=Sessions("10 us"))
    for clock, time in ((100, 0), (105, 20), (107, 10)):
        story.before = Moment(clock=clock)
        assert story.batch(of_times(time)) == []
    assert story.wake.clock == 110


def test_a_session_that_lives_on_is_on_time_again() -> None:
    story = told(AfterWatermark(late=AfterCount(9)), windows=Sessions("10 us"), lateness=100, mode="accumulating")
    story.batch(of_times(0), Moment(12))
    story.batch(of_times(9), Moment(18))
    story.batch([], Moment(19))
    assert [(each.timing, each.window) for each in story.results] == [
        (ON_TIME, Window(0, 10)),
        (ON_TIME, Window(0, 19)),
    ]
    assert story.results[1].replaces == (Window(0, 10),)


def test_a_session_goes_on_as_long_as_one_of_those_that_merged_was_not_finished() -> None:
    story = told(AfterCount(2), windows=Sessions("10 us"), mode="accumulating_and_retracting")
    story.batch(of_times(0, 1, 2, 20))
    assert [drop[1] for drop in story.dropped] == [Reason.FINISHED]
    merged = story.batch(of_times(12))[0]
    assert times_of(story, [merged]) == [[0, 1, 20, 12]]
    assert merged.retracts == ((Window(0, 11), (0, 1)),)


def test_a_record_that_joins_an_open_session_is_not_late() -> None:
    story = told(DefaultTrigger(), windows=Sessions("10 us"))
    story.batch(of_times(15), Moment(24))
    story.batch(of_times(5, 0), Moment(25))
    assert times_of(story) == [[15, 5, 0]]
    story.batch(of_times(15))
    assert [drop[1:] for drop in story.dropped] == [(Reason.LATE, Window(15, 25))]
