"""A batch ends before the first record that would put its partition too far ahead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import NOW, a_flow, tp
from tidemill.core.bind.flow import Flow
from tidemill.core.declare.guarantees import Guarantee
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.alignment import Seen
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import TopicBounds, plan_batch
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, Furthest, PartitionClock

SECOND = 1_000_000
DRIFT = 30

Log = Mapping[int, Sequence[int | None]]
"""The event times of the records of each partition, in seconds; None is a record that is rejected."""


def a_drifting_flow(*, idle_timeout: str | None = None, watermark: str | None = None, delay: int = 0) -> Flow:
    flow = a_flow(idle_timeout=idle_timeout, delay=f"{delay} s")
    inputs = tuple(replace(source, watermark=watermark) for source in flow.inputs)
    return replace(flow, inputs=inputs, spec=replace(flow.spec, max_drift=timedelta(seconds=DRIFT)))


def looking_at(log: Log, *, marked: bool = False) -> tuple[list[BatchPlan], object]:
    """A look at these records, and the plans that it looked at. Where they are `marked`, a time is a mark, too."""
    looked = list[BatchPlan]()

    def look(_: Flow, plan: BatchPlan, bounds: Mapping[TopicPartition, int]) -> Seen:
        looked.append(plan)
        reached, too_far = {}, {}
        for item in plan.ranges("t"):
            place = item.topic_partition
            times = log[place.partition][item.from_offset : item.until_offset]
            found = [(at, time * SECOND) for at, time in enumerate(times, item.from_offset) if time is not None]
            if found:
                most = max(time for _, time in found)
                reached[place] = Furthest(most, most if marked else None)
            beyond = [at for at, time in found if place in bounds and time > bounds[place]]
            if beyond:
                too_far[place] = beyond[0]
        return Seen(reached=reached, too_far=too_far)

    return looked, look


def at(newest: Mapping[int, int | None], *, marked: bool = False) -> Position:
    """A position that has read nothing of partitions with these newest event times."""
    clocks = {
        p: PartitionClock(
            max_event_time=None if time is None else time * SECOND,
            active_at=micros(NOW),
            mark=None if time is None or not marked else time * SECOND,
        )
        for p, time in newest.items()
    }
    topic = TopicPosition(topic_id="id", offsets=dict.fromkeys(newest, 0), clocks=clocks)
    return Position(batch_id=1, watermark=BEGINNING, topics={"t": topic})


def planned(
    flow: Flow, position: Position, log: Log, *, limit: int | None = None, silent_for: int = 0, marked: bool = False
) -> dict[int, int]:
    """How many records each partition gives."""
    _, look = looking_at(log, marked=marked)
    plan = plan_of(flow, position, log, look, limit=limit, silent_for=silent_for)
    return {} if plan is None else {r.topic_partition.partition: len(r) for r in plan.topics["t"].ranges}


def plan_of(
    flow: Flow, position: Position, log: Log, look: object, *, limit: int | None = None, silent_for: int = 0
) -> BatchPlan | None:
    held = {p: OffsetRange(tp(p), 0, len(times)) for p, times in log.items()}
    bounds = {"t": TopicBounds(topic_id="id", partitions=held)}
    clock, most = NOW + timedelta(seconds=silent_for), ReadLimit(records=limit)
    return plan_batch(
        flow,
        position,
        bounds,
        batch_id=position.batch_id + 1,
        clock=clock,
        limit=most,
        look=look,  # type: ignore[arg-type]
    )


def test_row_41_the_plan_of_the_fast_partition_stops_at_the_drift() -> None:
    log = {0: [1010, 1025, 1030, 1029, 1031, 1042, 1000], 1: [999, 1000]}
    assert planned(a_drifting_flow(), at({0: 990, 1: 990}), log) == {0: 4, 1: 2}
    _, look = looking_at(log)
    plan = plan_of(a_drifting_flow(idle_timeout="60 s"), at({0: 990, 1: 990}), log, look, silent_for=3_600)
    assert plan is not None
    assert plan.topics["t"].idle == ()


@pytest.mark.parametrize(("delay", "expected"), [(0, 1), (10, 2)])
def test_delay_is_part_of_the_watermark_and_so_of_the_bound(delay: int, expected: int) -> None:
    flow = a_drifting_flow(delay=delay)
    flow = replace(flow, inputs=tuple(replace(s, delay=timedelta(seconds=delay)) for s in flow.inputs))
    # The slowest partition is there without its delay: its watermark is that of its only record, 10 s earlier.
    log = {0: [1030, 1040, 1041], 1: [1000 + delay]}
    assert planned(flow, at({0: 0, 1: 0}), log) == {0: expected, 1: 1}


def test_the_slowest_partition_is_never_cut_although_all_records_are_far_ahead() -> None:
    assert planned(a_drifting_flow(), at({0: 0, 1: 0}), {0: [5_000], 1: [6_000, 7_000]}) == {0: 1, 1: 0}
    assert planned(a_drifting_flow(), at({0: None, 1: None}), {0: [5_000, 5_040], 1: [5_005]}) == {0: 1, 1: 1}


def test_rejected_records_neither_stop_a_partition_nor_move_it() -> None:
    assert planned(a_drifting_flow(), at({0: 0, 1: 0}), {0: [None, 20, None, 99, 20], 1: [None, 10]}) == {0: 3, 1: 2}


def test_where_records_tell_the_watermark_a_mark_stops_them() -> None:
    flow = a_drifting_flow(watermark="ts")
    log = {0: [40, 41], 1: [10], 2: [None]}
    assert planned(flow, at({0: 0, 1: 0, 2: None}, marked=True), log, marked=True) == {0: 1, 1: 1, 2: 1}


def test_partition_without_records_is_waited_for_by_each_record_until_it_is_idle() -> None:
    flow, log = a_drifting_flow(idle_timeout="60 s"), {0: [20, 31], 1: []}
    assert planned(flow, at({0: 0, 1: 0}), log, silent_for=60) == {0: 1, 1: 0}
    assert planned(flow, at({0: 0, 1: 0}), log, silent_for=61) == {0: 2, 1: 0}


def test_waiting_costs_one_look_however_many_wait() -> None:
    log = {0: [500, 501], 1: [900, 901], 2: []}
    position = at({0: 0, 1: 0, 2: 0})
    for limit, expected in ((None, 1), (9, 1), (2, 1), (1, 2)):
        looked, look = looking_at(log)
        plan = plan_of(a_drifting_flow(), position, log, look, limit=limit)
        assert plan is None or plan.records == 0
        assert len(looked) == expected


def test_what_counts_records_at_most_once_reads_none_before_it_is_planned() -> None:
    flow, log = a_drifting_flow(), {0: [20, 500], 1: [1]}
    flow = replace(flow, spec=replace(flow.spec, guarantee=Guarantee.AT_MOST_ONCE))
    looked, look = looking_at(log)
    plan = plan_of(flow, at({0: 0, 1: 0}), log, look)
    assert plan is not None
    assert (plan.records, looked) == (3, [])


def test_records_are_looked_at_once_where_none_is_too_far_ahead_and_not_at_all_without_a_drift() -> None:
    log = {0: [1, 2], 1: [3]}
    looked, look = looking_at(log)
    plan_of(a_drifting_flow(), at({0: 0, 1: 0}), log, look)
    assert len(looked) == 1
    plan_of(a_flow(), at({0: 0, 1: 0}), log, look)
    assert len(looked) == 1


def test_no_partition_waits_for_one_that_the_read_limit_leaves_out() -> None:
    # One record a batch, by turn: where it is that of the fast partition, the slow one gets it.
    log = {0: [500, 501], 1: [1, 2, 3]}
    position = at({0: 0, 1: 0})
    for expected in range(1, 4):
        plan = plan_of(a_drifting_flow(), position, log, looking_at(log)[1], limit=1)
        assert plan is not None
        position = moved(a_drifting_flow(), plan, log)
        assert position.topics["t"].offsets == {0: 0, 1: expected}


def test_what_a_fast_partition_does_not_read_of_the_limit_is_read_of_the_slow_one() -> None:
    log = {0: range(10, 5_000), 1: range(11, 211)}
    counts = planned(a_drifting_flow(), at({0: 9, 1: 10}), log, limit=200)
    # In proportion to their backlogs, the slow one gets 8 records: 41 in all.
    assert counts[0] > 30
    assert counts[1] > 50
    assert sum(counts.values()) <= 200


def moved(flow: Flow, plan: BatchPlan, log: Log) -> Position:
    """The position after a batch of this plan."""
    reached = looking_at(log)[1](flow, plan, {}).reached  # type: ignore[operator]
    return plan.position_after(1, reached, flow.delays, shapes={}, panes={})


_TIMES = st.lists(st.one_of(st.none(), st.integers(0, 300)), max_size=12)


@given(
    st.dictionaries(st.integers(0, 2), _TIMES, min_size=1), st.one_of(st.none(), st.integers(1, 9)), st.integers(0, 20)
)
def test_no_partition_gets_ahead_and_the_slowest_one_is_always_read_to_its_end(
    log: Log, limit: int | None, delay: int
) -> None:
    flow = a_drifting_flow()
    flow = replace(flow, inputs=tuple(replace(s, delay=timedelta(seconds=delay)) for s in flow.inputs))
    position = Position(batch_id=0, watermark=BEGINNING)
    while (plan := plan_of(flow, position, log, looking_at(log)[1], limit=limit)) is not None and plan.records:
        before = position.clocks
        position = moved(flow, plan, log)
        moving = {place.partition for place, clock in position.clocks.items() if clock != before.get(place)}
        marks = {tp.partition: clock.watermark(delay * SECOND) for tp, clock in position.clocks.items()}
        offsets = position.topics["t"].offsets
        most = min(places(log, offsets, marks, delay, limit or 1).values(), default=BEGINNING) + DRIFT * SECOND
        assert all(marks[p] <= most for p in moving)
    left = {p for p, times in log.items() if position.topics and offsets[p] < len(times)}
    if left:
        # All that wait are too far ahead of one that has no records left.
        finished = min(mark for p, mark in marks.items() if p not in left and mark != BEGINNING)
        next_ones = [next((t - delay) * SECOND for t in log[p][offsets[p] :] if t is not None) for p in left]
        assert min(next_ones) > finished + DRIFT * SECOND


def places(log: Log, offsets: Mapping[int, int], marks: Mapping[int, int], delay: int, limit: int) -> Mapping[int, int]:
    """The watermarks after what a batch could read more of each partition that has one; a limit cuts that anywhere."""
    found = {}
    for p, times in log.items():
        more = [(time - delay) * SECOND for time in times[offsets[p] :] if time is not None]
        if marks[p] != BEGINNING:
            found[p] = max([*more[:limit], marks[p]])
    return found
