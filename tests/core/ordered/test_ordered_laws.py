"""Laws of ordered windows: no cut of batches changes anything, and all is as a plain oracle says."""

import pickle
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.ordered import Batch, Record, Result, Story, cut, told
from support.ordered_oracle import WindowOracle, around_records, buffered, buffered_by_time, late_records
from support.session_oracle import SessionOracle
from tidemill.core.ordered.assigners import Sessions, Spans
from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from tidemill.core.ordered.firing import Reason
from tidemill.core.ordered.foldable import waits_for_time
from tidemill.core.ordered.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from tidemill.core.ordered.record_windows import RecordWindows
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
)
from tidemill.core.time.panes import Panes
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END
from tidemill.core.time.windows import Sliding, Tumbling

START = Moment(-60, 0)
counts = st.integers(1, 4)
values = st.one_of(st.none(), st.integers(-5, 5), st.floats(-5, 5, width=16))
records = st.builds(
    Record, time=st.integers(-40, 40), value=values, marker=st.sampled_from([False] * 5 + [True]), place=st.none()
)
plain = st.builds(Record, st.integers(-40, 40), values, st.just(False), st.none())
cuts = st.lists(st.integers(1, 4), max_size=4)


@st.composite
def stories(
    draw: st.DrawFn, record: st.SearchStrategy[Record] = records, *, ends: bool = True, ahead: bool = False
) -> list[Batch]:
    """Batches whose moments move on; the clock moves at least by one. Times may be counted from the watermark."""
    batches, watermark, clock = [], *START
    for _ in range(draw(st.integers(1, 5))):
        first, step = (watermark, 9) if ahead else (0, 40)
        watermark, clock = watermark + draw(st.integers(0, step)), clock + draw(st.integers(1, 12))
        told = [each._replace(time=first + each.time) for each in draw(st.lists(record, max_size=12))]
        batches.append(Batch(told, Moment(watermark, clock)))
    return [*batches, Batch([], Moment(END, clock + 1))] if ends and draw(st.booleans()) else batches


deltas = st.builds(DeltaPolicy, st.just("x"), st.sampled_from([0, 1, 2.5, 4]))
count_policies = st.builds(CountPolicy, counts)
times = st.builds(TimePolicy, st.sampled_from(["3 us", "10 us"]))
clocks = st.builds(TimePolicy, st.sampled_from(["3 us", "10 us"]), st.just("batch_clock"))
timeless_buffers = st.one_of(
    st.builds(TumblingBuffer, st.one_of(count_policies, deltas, st.just(PunctuationPolicy("m")))),
    st.builds(SlidingBuffer, st.one_of(count_policies, deltas, times), st.one_of(count_policies, deltas)),
)
sorting = timeless_buffers.map(lambda declared: replace(declared, order="event_time"))
buffers = st.one_of(
    timeless_buffers,
    st.builds(TumblingBuffer, st.one_of(times, clocks), st.booleans()),
    st.builds(SlidingBuffer, st.one_of(count_policies, deltas, times, clocks), st.one_of(count_policies, clocks)),
    sorting,
    st.builds(SlidingBuffer, st.one_of(count_policies, deltas, times), clocks, order=st.just("event_time")),
)

around = st.builds(RecordWindows, st.sampled_from(["1 us", "5 us", "12 us"]))

simple = st.one_of(
    st.builds(AfterCount, counts),
    st.builds(AfterProcessingTime, st.integers(1, 20).map("{} us".format)),
    st.just(AfterWatermark()),
    st.just(DefaultTrigger()),
    st.just(Never()),
)


def _composed(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        *(several.map(lambda each, kind=kind: kind(*each)) for kind in (AfterEach, AfterAny, AfterAll)),
        st.builds(OrFinally, parts, parts),
        st.builds(Repeatedly, parts),
        st.builds(AfterWatermark, st.one_of(st.none(), parts), st.one_of(st.none(), parts)),
    )


triggers = st.recursive(simple, _composed, max_leaves=5)
modes = st.sampled_from(["discarding", "accumulating", "accumulating_and_retracting", "accumulating_and_replacing"])
aligned = st.sampled_from(
    [Tumbling("10 us").panes, Sliding("12 us", "5 us").panes, Tumbling("7 us", offset="3 us").panes]
)
evictors = st.one_of(
    st.none(),
    st.builds(CountEvictor, counts),
    st.just(TimeEvictor("8 us")),
    st.just(DeltaEvictor("x", 2)),
)


@st.composite
def windows(draw: st.DrawFn, kinds: st.SearchStrategy[Any], evictor: st.SearchStrategy[Any]) -> EventWindows:
    mode, chosen = draw(modes), draw(evictor)
    if chosen is not None and mode != "discarding":
        chosen = replace(chosen, after=draw(st.booleans()))
    return EventWindows(
        draw(kinds),
        draw(triggers),
        f"{draw(st.sampled_from([0, 5, 30]))} us",
        mode,
        chosen,
        empty_on_time=draw(st.booleans()),
        accept_loss=True,
    )


def _same(one: Story, other: Story) -> None:
    assert one.results == other.results
    assert sorted(one.dropped) == sorted(other.dropped)
    assert one.wake == other.wake
    assert (one.state is None) == (other.state is None)


@given(st.one_of(buffers, around), stories(), cuts)
def test_no_cut_changes_what_says_itself_when_it_fires(declared, batches, cuts) -> None:
    _same(told(declared, batches, START), told(declared, cut(batches, cuts, START), START))


@settings(max_examples=300)
@given(windows(st.one_of(aligned, st.just(Sessions("6 us"))), evictors), stories(), cuts)
def test_no_cut_changes_windows_with_triggers(declared, batches, cuts) -> None:
    _same(told(declared, batches, START), told(declared, cut(batches, cuts, START), START))


aging = st.builds(SlidingBuffer, times, st.one_of(st.just(DeltaPolicy("x", 0)), clocks))
near = st.builds(Record, st.integers(0, 4), st.integers(0, 3), st.just(False), st.none())
others = st.one_of(buffers, around, windows(st.one_of(aligned, st.just(Sessions("6 us"))), evictors))


@settings(max_examples=1_000)
@given(aging, stories(near, ahead=True))
def test_time_need_not_pass_for_a_buffer_that_ages_before_it_wants_to_wake(declared, batches) -> None:
    assert _as_the_engine_does(declared, batches) == told(declared, batches, START).results


@settings(max_examples=300)
@given(others, stories())
def test_time_need_not_pass_for_a_key_before_it_wants_to_wake(declared, batches) -> None:
    assert _as_the_engine_does(declared, batches) == told(declared, batches, START).results


def _as_the_engine_does(declared: Any, batches: list[Batch]) -> list[Result]:
    """Records first, and then time, only where the key waits for it."""
    story, before = Story(declared, START), START
    for batch in batches:
        story.before = before
        story.batch(batch.records, before)
        if story.wake.reached(*batch.after):
            story.batch([], batch.after)
        before = batch.after
    return story.results


@given(st.one_of(buffers, around, windows(aligned, evictors)), stories())
def test_a_machine_may_be_sent_to_another_process(declared, batches) -> None:
    story, sent = Story(declared, START), Story(declared, START)
    for batch in batches:
        sent.machine = pickle.loads(pickle.dumps(sent.machine))
        assert story.batch(batch.records, batch.after) == sent.batch(batch.records, batch.after)


@settings(max_examples=300)
@given(around, stories(plain))
def test_windows_that_records_define_are_those_of_the_rule(declared, batches) -> None:
    story = told(declared, batches, START)
    found = [(each.window, each.records) for each in story.results]
    assert found == around_records(declared.micros, batches, START)
    assert {each.timing for each in story.results} <= {Timing.ON_TIME}


@given(timeless_buffers, st.lists(records, max_size=25), cuts)
def test_buffers_are_as_the_oracle_says(declared, records, cuts) -> None:
    story = told(declared, cut([Batch(records, Moment())], cuts))
    assert [list(each.records) for each in story.results] == buffered(declared, records)


@settings(max_examples=300)
@given(sorting, stories(ends=False), cuts)
def test_buffers_in_order_of_event_time_are_those_of_the_sorted_records(declared, batches, cuts) -> None:
    story = told(declared, cut(batches, cuts, START), START)
    assert [list(each.records) for each in story.results] == buffered_by_time(declared, batches, START)
    late = {number for number, reason, _ in story.dropped if reason is Reason.LATE}
    assert late == late_records(batches, START)


@given(sorting, st.lists(st.tuples(st.integers(0, 2), records), max_size=20), st.data())
def test_no_way_of_reading_partitions_changes_buffers_in_order_of_event_time(declared, sent, data) -> None:
    log = [record._replace(place=("t", partition, n)) for n, (partition, record) in enumerate(sent)]
    ways = [log, sorted(log, key=lambda record: record.place[1]), data.draw(st.permutations(log))]
    stories = [
        told(declared, [*cut([Batch(way, START)], data.draw(cuts), START), Batch([], Moment(99, 1))], START)
        for way in ways
    ]
    fired = [[sorted(s.records[i].place for i in each.records) for each in s.results] for s in stories]
    assert fired[0] == fired[1] == fired[2]


@settings(max_examples=300)
@given(sorting, st.lists(records, max_size=20), st.lists(st.integers(-40, 60), max_size=6), cuts)
def test_no_step_of_the_watermark_changes_buffers_in_order_of_event_time(declared, log, steps, cuts) -> None:
    end, passing = Batch([], Moment(60)), [Batch([], Moment(step)) for step in sorted(steps)]
    at_once = told(declared, [*cut([Batch(log, START)], cuts, START), end], START)
    assert told(declared, [Batch(log, START), *passing, end], START).results == at_once.results


@settings(max_examples=300)
@given(windows(aligned, evictors), stories(plain))
def test_windows_with_triggers_are_as_the_oracle_says(declared, batches) -> None:
    oracle = WindowOracle(declared)
    oracle.run(batches, START)
    story = told(declared, batches, START)
    assert story.results == oracle.results
    dropped = [(position, reason.value, window) for position, reason, window in story.dropped]
    assert sorted(dropped) == sorted(oracle.dropped)


MODES = ("discarding", "accumulating", "accumulating_and_retracting", "accumulating_and_replacing")


@settings(max_examples=300)
@given(st.sampled_from(MODES), st.integers(1, 12), st.integers(0, 20), stories(plain, ahead=True))
def test_sessions_with_early_and_late_firings_are_as_the_oracle_says(mode, gap, lateness, batches) -> None:
    oracle = SessionOracle(gap, mode, lateness, alone=False)
    oracle.run(batches, START)
    trigger = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
    story = told(EventWindows(Sessions(f"{gap} us"), trigger, f"{lateness} us", mode), batches, START)
    # Which firings one replaces is held to the plain rule on the engine, where only the last ones stay.
    fired = [replace(each, retracts=tuple(sorted(each.retracts)), replaces=()) for each in story.results]
    assert fired == [replace(each, retracts=tuple(sorted(each.retracts))) for each in oracle.results]
    assert [position for position, *_ in story.dropped] == oracle.late


@given(st.lists(st.integers(-200, 200), max_size=30), st.integers(1, 40), cuts)
def test_sessions_are_those_of_the_sorted_times(times, gap, cuts) -> None:
    declared = EventWindows(Sessions(f"{gap} us"))
    story = told(declared, [*cut([Batch([Record(time) for time in times], Moment())], cuts), Batch([], Moment(END))])
    expected: list[list[int]] = []
    for time in sorted(times):
        if expected and time - expected[-1][-1] <= gap:
            expected[-1].append(time)
        else:
            expected.append([time])
    found = [(each.window, sorted(times[i] for i in each.records)) for each in story.results]
    assert [each for _, each in found] == expected
    assert all((window.start, window.end) == (each[0], each[-1] + gap) for window, each in found if window)


@given(windows(st.one_of(aligned, st.just(Sessions("6 us"))), st.none()), stories())
def test_every_record_is_fired_or_dropped(declared, batches) -> None:
    story = told(declared, [*batches, Batch([], Moment(END, 10**6))], START)
    fired = {record for each in story.results for record in each.records}
    data = {i for i, record in enumerate(story.records) if not record.marker}
    assert fired | {position for position, *_ in story.dropped} == data
    assert story.state is None


@given(st.one_of(buffers, windows(st.one_of(aligned, st.just(Sessions("6 us"))), evictors)), stories())
def test_a_key_needs_no_batch_before_it_wants_to_wake(declared, batches) -> None:
    """A batch without records that comes before the key is due fires nothing, and forgets nothing."""
    story = Story(declared, START)
    for batch in batches:
        story.batch(batch.records, batch.after)
        state, wake, before = story.state, story.wake, story.before
        watermark = END - 1 if wake.watermark is None else wake.watermark - 1
        clock = END - 1 if wake.clock is None else wake.clock - 1
        if watermark >= before.watermark and clock >= before.clock:
            assert story.batch([], Moment(watermark, clock)) == []
            assert (story.state is None) == (state is None)
        story.state, story.before = state, before


@given(aligned, st.lists(st.integers(-100, 100), max_size=40))
def test_spans_remember_what_the_arithmetic_says(panes: Panes, times) -> None:
    spans = Spans(panes)
    for time in times:
        start, end, windows = spans.of(time)
        assert start <= time < end
        assert all(panes.windows_of(each) == windows == panes.windows_of(time) for each in range(start, end))


@given(st.one_of(timeless_buffers, st.builds(TumblingBuffer, times)), st.lists(records, max_size=12))
def test_time_alone_does_nothing_to_buffers_that_do_not_wait_for_it(declared: Any, held: list[Record]) -> None:
    story = Story(declared)
    story.batch(held, Moment(0, 5))
    before = len(story.results), story.state
    if waits_for_time(declared):
        return
    for moment in (Moment(0, 99), Moment(10**9, 10**9), Moment(END, 10**9)):
        story.batch([], moment)
        assert (len(story.results), story.state) == before
