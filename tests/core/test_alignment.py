"""Partitions that are far ahead in event time wait for the slowest one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from support.builders import NOW, a_flow, tp
from tidemill import Pipeline
from tidemill.core.bind.flow import Flow
from tidemill.core.errors import DeclarationError
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import TopicBounds, plan_batch
from tidemill.core.plan.position import Position, TopicPosition
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import PartitionClock

SECOND = 1_000_000


def planned(
    newest: Mapping[int, int | None],
    left: Mapping[int, int],
    *,
    drift: int | None = 30,
    silent_for: int = 0,
    **how: bool,
) -> BatchPlan | None:
    """The plan of partitions with these newest event times (seconds), which have so many records left."""
    flow: Flow = a_flow(idle_timeout="60 s")
    limit = None if drift is None else timedelta(seconds=drift)
    flow = replace(flow, spec=replace(flow.spec, max_drift=limit))
    clocks = {
        p: PartitionClock(max_event_time=None if at is None else at * SECOND, active_at=micros(NOW))
        for p, at in newest.items()
    }
    topic = TopicPosition(topic_id="id", offsets=dict.fromkeys(newest, 10), clocks=clocks)
    held = {p: OffsetRange(tp(p), 0, 10 + many) for p, many in left.items()}
    bounds = {"t": TopicBounds(topic_id="id", partitions=held)}
    position = Position(batch_id=1, watermark=1000 * SECOND, topics={"t": topic})
    clock = NOW + timedelta(seconds=silent_for)
    return plan_batch(flow, position, bounds, batch_id=2, clock=clock, limit=ReadLimit(), **how)


def test_where_records_tell_the_watermark_a_partition_that_has_told_none_holds_nobody_back() -> None:
    flow = a_flow(idle_timeout="60 s")
    told = tuple(replace(source, watermark="ts") for source in flow.inputs)
    flow = replace(flow, inputs=told, spec=replace(flow.spec, max_drift=timedelta(seconds=30)))
    clocks = {
        p: PartitionClock(max_event_time=500 * SECOND, active_at=micros(NOW), mark=mark)
        for p, mark in enumerate((None, 10 * SECOND, 100 * SECOND))
    }
    position = Position(
        batch_id=1,
        watermark=0,
        topics={"t": TopicPosition(topic_id="id", offsets=dict.fromkeys(clocks, 10), clocks=clocks)},
    )
    bounds = {"t": TopicBounds(topic_id="id", partitions={p: OffsetRange(tp(p), 0, 20) for p in clocks})}
    plan = plan_batch(flow, position, bounds, batch_id=2, clock=NOW, limit=ReadLimit())
    assert read(plan) == {0: 10, 1: 10, 2: 0}


def read(plan: BatchPlan | None) -> dict[int, int]:
    """How many records each partition gives."""
    assert plan is not None
    return {r.topic_partition.partition: len(r) for r in plan.topics["t"].ranges}


def test_row_41_a_partition_that_is_further_ahead_than_the_drift_gives_nothing_and_is_not_idle() -> None:
    plan = planned({0: 1042, 1: 1000}, {0: 5, 1: 5})
    assert read(plan) == {0: 0, 1: 5}
    assert plan is not None
    assert plan.topics["t"].idle == ()


@pytest.mark.parametrize(("newest", "expected"), [(1030, 5), (1031, 0)])
def test_the_drift_itself_is_allowed(newest: int, expected: int) -> None:
    assert read(planned({0: newest, 1: 1000}, {0: 5, 1: 5}))[0] == expected


def test_a_slow_partition_without_records_is_waited_for_until_it_is_idle() -> None:
    assert planned({0: 1042, 1: 1000}, {0: 5, 1: 0}, silent_for=60) is None
    assert read(planned({0: 1042, 1: 1000}, {0: 5, 1: 0}, silent_for=61)) == {0: 5, 1: 0}


def test_a_partition_that_never_had_an_event_holds_nobody_back() -> None:
    assert read(planned({0: 1042, 1: None}, {0: 5, 1: 0})) == {0: 5, 1: 0}
    assert read(planned({0: 1042, 1: None}, {0: 5, 1: 5})) == {0: 5, 1: 5}


def test_nothing_waits_without_a_drift_nor_when_the_input_has_ended() -> None:
    assert read(planned({0: 1042, 1: 1000}, {0: 5, 1: 5}, drift=None)) == {0: 5, 1: 5}
    assert read(planned({0: 1042, 1: 1000}, {0: 5, 1: 5}, drain=True)) == {0: 5, 1: 5}


def test_a_drift_is_a_duration() -> None:
    with pytest.raises(DeclarationError, match="max_drift"):
        Pipeline("p", every="1 minute", max_drift="soon")
    with pytest.raises(DeclarationError, match="max_drift"):
        Pipeline("p", every="1 minute", max_drift="-1 s")
