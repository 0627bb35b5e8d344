"""How the next plan is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from tidemill.core.bind.flow import Flow, Input
from tidemill.core.declare.guarantees import Guarantee
from tidemill.core.declare.operators import StartFrom
from tidemill.core.errors import TopicRecreated
from tidemill.core.identity.semantics import SEMANTICS
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.alignment import Alignment, Look, planned_near
from tidemill.core.plan.amendments import Ranges, Redefined
from tidemill.core.plan.lost_offsets import missing_of, rest_of, skipped_of
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Gone, Position, TopicPosition
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.plan.work import Live, TopicPlan
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicBounds:
    """What a log says about a topic at one moment: its id, and the offsets that each partition holds.

    Partitions in `waiting` have an open transaction behind their end: more records follow when it ends.
    """

    topic_id: str
    partitions: Mapping[int, OffsetRange]
    waiting: Collection[int] = ()


def plan_batch(  # noqa: PLR0913  a plan is a function of exactly these
    flow: Flow,
    position: Position,
    bounds: Mapping[str, TopicBounds],
    *,
    batch_id: int,
    clock: datetime,
    limit: ReadLimit,
    drain: bool = False,
    silent: Collection[TopicPartition] = (),
    gone: tuple[Gone, ...] = (),
    redefined: Redefined | None = None,
    told: Mapping[str, int] | None = None,
    look: Look | None = None,
) -> BatchPlan | None:
    """The next batch, or None when there is nothing to do.

    Partitions in `silent` count as idle as soon as all their records are read. `bounds` has no entry for topics that do
    not exist. `gone` are partitions that somebody declares gone with this plan. `told` has the watermarks of pipelines
    that send the records of a topic, by topic, from before the log was asked. `look` reads records where partitions may
    not be too far ahead of each other; without it, only those that are too far ahead already give nothing.

    There is something to do when the log has records beyond the position, when an idle partition lets the watermark
    move, when the clock of a table of firings is due, when the input is drained and windows are open, when partitions
    are declared `gone`, when numbers are `redefined`, or when an input begins at the end of its topic: the batch stores
    where that was. `drain` takes effect in the plan that reaches the end of the log.

    Raises:
        TopicRecreated: a topic has the name of one that was read, but another id.
        OffsetsLost: the log no longer holds the next offset to read, or ends before it, or lost a partition.
        UnknownTopic: a topic that was read is missing.
    """
    shown = {topic: found.partitions for topic, found in bounds.items()}
    missing = missing_of(flow, position, shown, (*(position.gone or ()), *gone))
    backlog = _backlogs(flow, position, bounds)
    timeout = None if flow.spec.idle_timeout is None else micros(flow.spec.idle_timeout)
    judged = partial(_topic_plan, clock=micros(clock), idle_timeout=timeout, silent=silent)

    live = Live(
        topics={},
        skipped=skipped_of(position, shown) or None,
        missing=missing or None,
        gone=gone or None,
        redefined=redefined,
    )

    def planned(readable: Ranges) -> BatchPlan:
        topics = {
            topic: judged(position.topics.get(topic), bounds[topic], ranges, told=(told or {}).get(topic))
            for topic, ranges in _taken(readable, limit).items()
        }
        at_end = all(_reads_to_end(topic, bounds[name]) for name, topic in topics.items())
        drains = drain and at_end and position.watermark < END
        return _plan(flow, position, batch_id, clock, replace(live, topics=topics, drain=drains))

    # What is drained has come to its end: nothing has to wait.
    aligned = None if drain else Alignment.of(flow, position, backlog, clock=clock)
    plan = planned(backlog) if aligned is None else planned_near(aligned, planned, _seeing(flow, look))
    return plan if plan.records or gone or redefined or _moves(flow, plan) else None


def _seeing(flow: Flow, look: Look | None) -> Look | None:
    """The look of a pipeline. What counts records at most once must not fail for a record that no batch has planned."""
    return None if flow.spec.guarantee is Guarantee.AT_MOST_ONCE else look


def _plan(flow: Flow, position: Position, batch_id: int, clock: datetime, live: Live) -> BatchPlan:
    return BatchPlan(
        pipeline=flow.key,
        batch_id=batch_id,
        clock=clock,
        position=position,
        logical_hash=flow.logical_hash,
        work=live,
        semantics=SEMANTICS,
    )


def _moves(flow: Flow, plan: BatchPlan) -> bool:
    """Whether a plan without records has something to do: the watermark moves, a clock is due, or an input begins."""
    position = plan.position
    if any(due <= micros(plan.clock) for due in (position.due or {}).values()):
        return True
    begins = any(i.start is StartFrom.LATEST and i.topic not in position.topics for i in flow.inputs)
    after = plan.watermark_after({}, flow.delays)
    behind = plan.lagging_after({}, flow.delays, flow.lags) or {}
    # Delays may have become shorter.
    closer = any(behind.get(table, after) > at for table, at in (position.lagging or {}).items())
    return begins or closer or after > position.watermark


def _backlogs(flow: Flow, position: Position, bounds: Mapping[str, TopicBounds]) -> Ranges:
    """All offsets beyond the position, by topic: one range for each partition, some of them empty."""
    there = [i for i in flow.inputs if i.topic in bounds]
    return {i.topic: _backlog(flow, i, position.topics.get(i.topic), bounds[i.topic]) for i in there}


def _taken(backlog: Ranges, limit: ReadLimit) -> Ranges:
    """The offsets that the batch reads."""
    taken = iter(limit.apply([r for ranges in backlog.values() for r in ranges]))
    return {topic: tuple(next(taken) for _ in ranges) for topic, ranges in backlog.items()}


def _backlog(flow: Flow, source: Input, before: TopicPosition | None, bounds: TopicBounds) -> tuple[OffsetRange, ...]:
    if before is not None and before.topic_id != bounds.topic_id:
        raise TopicRecreated(
            f"{flow.name}: topic `{source.topic}` was deleted and created again: expected id {before.topic_id}, "
            f"found {bounds.topic_id}; its offsets mean other records now",
            fix=f"put the old topic back; {without_copy(flow.name)}",
        )
    held = [available for _, available in sorted(bounds.partitions.items())]
    return tuple(rest_of(flow, source.start, before, available) for available in held)


def _topic_plan(  # noqa: PLR0913  what is idle depends on all of it
    before: TopicPosition | None,
    bounds: TopicBounds,
    ranges: tuple[OffsetRange, ...],
    *,
    clock: int,
    idle_timeout: int | None,
    silent: Collection[TopicPartition],
    told: int | None,
) -> TopicPlan:
    idle, marks = [], {}
    for item in ranges:
        partition = item.topic_partition.partition
        known = before.clocks.get(partition) if before else None
        # A partition is slow, not silent, if a read limit or an open transaction holds back its records.
        has_more = item.from_offset < bounds.partitions[partition].until_offset or partition in bounds.waiting
        is_idle = known is not None and known.is_idle(clock=clock, timeout=idle_timeout)
        if not has_more and told is None and (is_idle or item.topic_partition in silent):
            idle.append(partition)
        if told is not None and _reads_all(item, bounds):
            marks[partition] = told
    return TopicPlan(topic_id=bounds.topic_id, ranges=ranges, idle=tuple(idle), marks=marks or None)


def _reads_to_end(topic: TopicPlan, bounds: TopicBounds) -> bool:
    return not bounds.waiting and all(_reads_all(item, bounds) for item in topic.ranges)


def _reads_all(item: OffsetRange, bounds: TopicBounds) -> bool:
    """Whether nothing that the partition had then is left once a range is read."""
    partition = item.topic_partition.partition
    return partition not in bounds.waiting and item.until_offset == bounds.partitions[partition].until_offset
