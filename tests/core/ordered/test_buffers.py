"""Buffers: every case of rows 23 to 29, what is refused, and the edges."""

import math

import pytest

from support.ordered import Batch, Record, Story, cut, of_times, of_values, shown, times_of, told
from tidemill.core.errors import DeclarationError, Incompatible
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.firing import Reason, Wake
from tidemill.core.ordered.machine import machine_of
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

CUTS = [(), (1,), (2,), (3,), (4,), (1, 4), (5, 1)]
DAY = 86_400_000_000
MARKER = Record(marker=True)


def numbers(last: int) -> list[Record]:
    return of_values(*range(last + 1))


def left(story: Story) -> list[float]:
    """The values in the buffer: those of pieces that no firing has, or that the state names."""
    state = story.state or {}
    if "ids" in state:
        ids = [i for first, last in state["ids"] for i in range(first, last + 1)]
        return [story.records[story.content[i][0]].value for i in ids]  # type: ignore[misc]
    return [story.records[i].value for piece in story.content.keys() - story.fixed for i in story.content[piece]]  # type: ignore[misc]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize(
    ("declared", "records", "fires", "keeps"),
    [
        pytest.param(
            SlidingBuffer(CountPolicy(3)),
            of_values(1, 2, 3, 4),
            [[1], [1, 2], [1, 2, 3], [2, 3, 4]],
            [2, 3, 4],
            id="row 23 sliding count",
        ),
        pytest.param(
            TumblingBuffer(CountPolicy(5)),
            numbers(11),
            [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
            [10, 11],
            id="row 24 tumbling count",
        ),
        pytest.param(
            SlidingBuffer(CountPolicy(5), CountPolicy(2)),
            numbers(6),
            [[0, 1], [0, 1, 2, 3], [1, 2, 3, 4, 5]],
            [2, 3, 4, 5, 6],
            id="row 25 sliding count, count",
        ),
        pytest.param(
            TumblingBuffer(DeltaPolicy("x", 2)),
            numbers(7),
            [[0, 1, 2], [3, 4, 5]],
            [6, 7],
            id="row 26 tumbling delta",
        ),
        pytest.param(
            TumblingBuffer(DeltaPolicy("x", 1.5)),
            of_values(16.0, 16.4, 17.1, 17.6),
            [[16.0, 16.4, 17.1]],
            [17.6],
            id="row 26 tumbling delta of floats",
        ),
        pytest.param(
            TumblingBuffer(DeltaPolicy("x", 2)),
            of_values(5, 1, -100, 7, 8),
            [[5, 1, -100, 7]],
            [8],
            id="row 26 lower values never flush",
        ),
        pytest.param(
            SlidingBuffer(CountPolicy(5), DeltaPolicy("x", 2)),
            numbers(8),
            [[0, 1, 2], [1, 2, 3, 4, 5]],
            [4, 5, 6, 7, 8],
            id="row 27 evict count, trigger delta",
        ),
        pytest.param(
            SlidingBuffer(DeltaPolicy("x", 2), CountPolicy(5)),
            numbers(10),
            [[2, 3, 4], [7, 8, 9]],
            [8, 9, 10],
            id="row 27 evict delta, trigger count",
        ),
        pytest.param(TumblingBuffer(CountPolicy(1)), of_values(1, 1), [[1], [1]], [], id="n = 1"),
        pytest.param(
            SlidingBuffer(TimePolicy("10 us")),
            of_values(0, 10, 11, 30),
            [[0], [0, 10], [10, 11], [30]],
            [30],
            id="sliding time",
        ),
        pytest.param(
            SlidingBuffer(DeltaPolicy("x", 2), DeltaPolicy("x", 3)),
            numbers(8),
            [[1, 2, 3], [5, 6, 7]],
            [6, 7, 8],
            id="sliding delta, delta",
        ),
    ],
)
def test_row(declared, records, fires, keeps, cuts) -> None:
    story = told(declared, cut([Batch(records, Moment())], cuts))
    assert shown(story) == fires
    assert left(story) == keeps
    assert {each.timing for each in story.results} == {Timing.ON_TIME}


@pytest.mark.parametrize("emit_empty", [True, False])
def test_row_28_time_by_the_recorded_clock(emit_empty) -> None:
    declared = TumblingBuffer(TimePolicy("10 us", clock="batch_clock"), emit_empty=emit_empty)
    story = Story(declared)
    for clock in (1, 4, 12):
        story.before = Moment(clock=clock)
        story.batch(of_times(999), Moment(clock=clock))
    story.batch([], Moment(clock=30))
    found = [(each.window.end, len(each.records)) for each in story.results]
    assert found == ([(10, 2), (20, 1), (30, 0)] if emit_empty else [(10, 2), (20, 1)])
    assert story.wake == (Wake(clock=40) if emit_empty else Wake())
    assert (story.state is None) is not emit_empty


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_row_29_markers_flush_and_are_never_data(cuts) -> None:
    records = [Record(value=1), Record(value=2), MARKER, MARKER, Record(value=3), Record(value=4)]
    story = told(
        TumblingBuffer(PunctuationPolicy("is_end")), cut([Batch(records, Moment()), Batch([], Moment(END))], cuts)
    )
    assert shown(story) == [[1, 2], [], [3, 4]]
    assert [each.position for each in story.results] == [2, 3, None]
    assert story.state is None


def test_only_the_batch_that_reaches_the_end_of_the_log_flushes_without_a_marker() -> None:
    story = Story(TumblingBuffer(PunctuationPolicy("is_end")))
    story.batch(of_values(1), Moment(END))
    story.before = Moment(END)
    for value in (2, 3):
        story.batch(of_values(value), Moment(END))
        assert story.wake == Wake()
    story.batch([MARKER, *of_values(4)], Moment(END))
    assert shown(story) == [[1], [2, 3]]
    assert left(story) == [4]


@pytest.mark.parametrize(
    ("declared", "dropped"),
    [(TumblingBuffer(TimePolicy("10 us")), [(1, Reason.LATE)]), (SlidingBuffer(TimePolicy("10 us")), [])],
    ids=str,
)
def test_buffers_by_event_time_take_nothing_after_the_end_of_the_log(declared, dropped) -> None:
    story = told(declared, [Batch(of_times(5), Moment(END)), Batch(of_times(7), Moment(END))])
    assert times_of(story) == [[5]]
    assert [drop[:2] for drop in story.dropped] == dropped


@pytest.mark.parametrize("flush", [CountPolicy(2), DeltaPolicy("x", 1), TimePolicy("10 us")], ids=str)
def test_a_marker_is_no_data_for_any_policy(flush) -> None:
    story = told(TumblingBuffer(flush), [Batch([*of_values(1, 3), MARKER], Moment()), Batch([], Moment(END))])
    assert 2 not in {record for each in story.results for record in each.records}
    assert not story.dropped


def test_sliding_buffers_take_no_markers_either() -> None:
    story = told(SlidingBuffer(CountPolicy(2)), [Batch([MARKER, *of_values(1), MARKER], Moment())])
    assert [each.records for each in story.results] == [(1,)]


def test_time_windows_of_events_wait_for_the_watermark() -> None:
    story = Story(TumblingBuffer(TimePolicy("10 us")))
    story.batch(of_times(3, -1, 12, 9), Moment(9))
    assert story.wake == Wake(watermark=10)
    assert [each.window for each in story.results] == [Window(-10, 0)]
    assert times_of(story, story.batch(of_times(8), Moment(10))) == [[3, 9, 8]]
    assert story.batch(of_times(7), Moment(10)) == []
    assert story.dropped == [(5, Reason.LATE, Window(0, 10))]


def test_empty_windows_of_events_end_with_the_log() -> None:
    story = told(
        TumblingBuffer(TimePolicy("10 us"), emit_empty=True),
        [Batch(of_times(5, 35), Moment(22)), Batch([], Moment(END))],
    )
    assert [(each.window.start, len(each.records)) for each in story.results] == [(0, 1), (10, 0), (20, 0), (30, 1)]
    assert story.state is None


@pytest.mark.parametrize(("empty", "fire"), [(10_000, 10_000), (10_001, 0), (10**15, 0)])
@pytest.mark.parametrize("end", [0, END])
def test_a_gap_of_more_than_ten_thousand_empty_windows_fires_none_of_them(empty, fire, end) -> None:
    declared, later = TumblingBuffer(TimePolicy("10 us"), emit_empty=True), (empty + 1) * 10
    story = told(declared, [Batch(of_times(0, later, later + 30), Moment(end or later + 40))])
    assert times_of(story)[:1] == [[0]]
    assert times_of(story)[-4:] == [[later], [], [], [later + 30]]
    assert len(story.results) == 1 + fire + 4


def test_a_key_that_was_idle_for_long_fires_empty_windows_again_from_then_on() -> None:
    story = Story(TumblingBuffer(TimePolicy("10 us", clock="batch_clock"), emit_empty=True))
    story.before = Moment(clock=1)
    story.batch(of_times(0), Moment(clock=1))
    story.batch([], Moment(clock=10**9))
    assert [each.window.start for each in story.results] == [0]
    assert story.wake == Wake(clock=10**9 + 10)
    story.batch([], Moment(clock=10**9 + 20))
    assert [each.window.start for each in story.results] == [0, 10**9, 10**9 + 10]


def test_a_buffer_of_the_last_ten_microseconds_forgets_by_the_watermark() -> None:
    story = Story(SlidingBuffer(TimePolicy("10 us")))
    story.batch(of_times(5, 15), Moment(20))
    assert times_of(story) == [[5], [5, 15]]
    assert story.wake == Wake(watermark=26)
    assert story.batch([], Moment(25)) == []
    assert left(story) == [None]
    assert [each.records for each in story.batch(of_times(14, 17), Moment(25))] == [(1,), (1, 3)]
    assert story.dropped == []
    story.batch([], Moment(100))
    assert story.state is None
    assert story.wake == Wake()


def test_records_out_of_order_leave_by_their_own_time() -> None:
    story = told(SlidingBuffer(TimePolicy("10 us")), [Batch(of_times(25, 16, 30), Moment())])
    assert times_of(story) == [[25], [25, 16], [25, 30]]


def test_a_counter_outlives_the_records_that_time_evicts() -> None:
    story = Story(SlidingBuffer(TimePolicy("10 us"), CountPolicy(3)))
    for time in (0, 100, 200, 300):
        story.batch(of_times(time), Moment(time + 50))
    assert times_of(story) == [[200]]


def test_a_time_trigger_fires_at_whole_multiples_before_later_records() -> None:
    story = Story(SlidingBuffer(CountPolicy(3), TimePolicy("10 us", clock="batch_clock")))
    for clock in (1, 4, 12, 31):
        story.before = Moment(clock=clock)
        story.batch(of_values(clock), Moment(clock=clock))
    assert shown(story) == [[1, 4], [1, 4, 12], [1, 4, 12]]
    assert story.wake == Wake(clock=40)
    assert [each.index for each in story.results] == [0, 1, 2]


@pytest.mark.parametrize(("moments", "fire"), [(10_000, 10_000), (10_001, 1), (10**12, 1)])
def test_after_a_long_pause_of_batches_only_the_last_moment_counts(moments, fire) -> None:
    story = Story(SlidingBuffer(CountPolicy(3), TimePolicy("10 us", clock="batch_clock")))
    story.before = Moment(clock=1)
    story.batch(of_values(7), Moment(clock=1))
    story.batch([], Moment(clock=10 * moments + 9))
    assert shown(story) == [[7]] * fire
    assert story.wake == Wake(clock=10 * moments + 10)


@pytest.mark.parametrize(("length", "fire"), [(9_000, 9_000), (9_999, 9_999), (10_001, 1)])
@pytest.mark.parametrize("pause", [20_000, 10**12])
def test_records_that_were_there_before_a_long_pause_fire_before_they_are_too_old(length, fire, pause) -> None:
    evict = TimePolicy(f"{10 * length} us", clock="batch_clock")
    story = Story(SlidingBuffer(evict, TimePolicy("10 us", clock="batch_clock")))
    story.before = Moment(clock=1)
    story.batch(of_values(7), Moment(clock=1))
    story.batch([], Moment(clock=10 * pause))
    assert shown(story) == [[7]] * fire
    assert story.state is None


def test_a_time_trigger_of_a_time_buffer_shows_what_was_there_at_its_moment() -> None:
    story = Story(SlidingBuffer(TimePolicy("15 us", clock="batch_clock"), TimePolicy("10 us", clock="batch_clock")))
    for clock in (1, 8, 32):
        story.before = Moment(clock=clock)
        story.batch(of_values(clock), Moment(clock=clock))
    assert shown(story) == [[1, 8], [8]]
    story.batch([], Moment(clock=70))
    assert shown(story)[2:] == [[32]]
    assert story.state is None


@pytest.mark.parametrize("value", [None, math.nan, math.inf], ids=str)
@pytest.mark.parametrize(
    "declared",
    [
        TumblingBuffer(DeltaPolicy("x", 2)),
        SlidingBuffer(DeltaPolicy("x", 2)),
        SlidingBuffer(CountPolicy(9), DeltaPolicy("x", 2)),
    ],
    ids=str,
)
def test_a_record_without_a_value_is_rejected_and_moves_nothing(declared, value) -> None:
    with_it = told(declared, [Batch([Record(value=each) for each in (0, value, 1, 3, value)], Moment())])
    without = told(declared, [Batch([Record(value=each) for each in (0, 1, 3)], Moment())])
    assert shown(with_it) == shown(without)
    assert [drop[:2] for drop in with_it.dropped] == [(1, Reason.NO_VALUE), (4, Reason.NO_VALUE)]


@pytest.mark.parametrize("far", [-(2**62), -DAY, 2**62], ids=str)
def test_times_far_from_1970_are_ordinary(far) -> None:
    declared = TumblingBuffer(TimePolicy("1 day"))
    story = told(declared, [Batch(of_times(far, far, far - far % DAY + DAY), Moment(END))])
    assert [len(each.records) for each in story.results] == [2, 1]


@pytest.mark.parametrize("declared", [TumblingBuffer(CountPolicy(2)), SlidingBuffer(CountPolicy(2))], ids=str)
def test_new_pieces_are_numbered_from_where_the_engine_says(declared) -> None:
    huge = 2**63 + 5
    folded = machine_of(declared).fold(None, Records([1, 2, 3]), Moment(), Moment(), huge)
    assert min(folded.pieces) == huge
    again = machine_of(declared).fold(folded.state, Records([4]), Moment(), Moment())
    assert again.pieces[0] >= max(folded.pieces)


def test_an_empty_batch_of_an_unknown_key_keeps_nothing() -> None:
    for declared in (TumblingBuffer(CountPolicy(2)), SlidingBuffer(CountPolicy(2)), TumblingBuffer(TimePolicy("1 s"))):
        folded = machine_of(declared).fold(None, Records(), Moment(), Moment(5, 5))
        assert (folded.state, folded.wake, folded.firings) == (None, Wake(), [])


def test_a_buffer_that_holds_only_whole_flushes_keeps_nothing() -> None:
    assert told(TumblingBuffer(CountPolicy(2)), [Batch(of_values(1, 2), Moment())]).state is None


def test_the_state_of_another_machine_is_refused() -> None:
    state = told(TumblingBuffer(CountPolicy(2)), [Batch(of_values(1), Moment())]).state
    assert state is not None
    with pytest.raises(Incompatible, match="'tumbling' in version 1, expected 'sliding'"):
        machine_of(SlidingBuffer(CountPolicy(2))).fold(state, Records(), Moment(), Moment())
    with pytest.raises(Incompatible, match="version 2"):
        machine_of(TumblingBuffer(CountPolicy(2))).fold({**state, "version": 2}, Records(), Moment(), Moment())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: CountPolicy(0), "at least 1, found 0"),
        (lambda: CountPolicy(True), "at least 1, found True"),
        (lambda: CountPolicy(2.0), "found 2.0"),  # type: ignore[arg-type]
        (lambda: DeltaPolicy("", 1), "name of a column"),
        (lambda: DeltaPolicy("x", -1), "must not be negative"),
        (lambda: DeltaPolicy("x", math.nan), "is a number"),
        (lambda: TimePolicy("0 seconds"), "longer than nothing"),
        (lambda: TimePolicy("1 s", clock="wall"), '"event_time" or "batch_clock", found \'wall\''),
        (lambda: PunctuationPolicy(""), "name of a column"),
        (lambda: TumblingBuffer(5), "flush is no policy: 5"),  # type: ignore[arg-type]
        (lambda: TumblingBuffer(CountPolicy(2), emit_empty=True), "no empty windows(.|\n)*TimePolicy"),
        (lambda: SlidingBuffer(PunctuationPolicy("m")), r"evict is punctuation m(.|\n)*write TumblingBuffer"),
        (lambda: SlidingBuffer(CountPolicy(2), PunctuationPolicy("m")), "trigger is punctuation m"),
        (lambda: SlidingBuffer(CountPolicy(2), TimePolicy("1 s")), r"out of order(.|\n)*Sliding\(size, slide\)"),
        (lambda: SlidingBuffer(DeltaPolicy("a", 1), DeltaPolicy("b", 1)), "different attributes: a and b"),
    ],
)
def test_what_cannot_be_is_refused_with_a_cure(make, says) -> None:
    with pytest.raises(DeclarationError, match=says) as refused:
        make()
    assert refused.value.fix or "found" in str(refused.value)


def test_policies_read_as_they_are_written() -> None:
    assert (
        str(SlidingBuffer(CountPolicy(5), DeltaPolicy("x", 2))) == "sliding, evict by count 5, trigger by delta x > 2"
    )
    assert str(TumblingBuffer(TimePolicy("60 s", clock="batch_clock"), emit_empty=True)) == (
        "tumbling by time 1 minute of batch clock, also empty"
    )


def test_a_threshold_may_be_beyond_all_doubles() -> None:
    assert DeltaPolicy("x", 10**400).threshold == 10**400
