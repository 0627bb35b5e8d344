"""How the next plan is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.errors import OffsetsLost, TopicRecreated
from tidemill.core.flow import Flow, Input
from tidemill.core.guarantees import OnLoss
from tidemill.core.offsets import OffsetRange, TopicPartition
from tidemill.core.operators import StartFrom
from tidemill.core.plan import BatchPlan, Kind, TopicPlan
from tidemill.core.position import Position, TopicPosition
from tidemill.core.times import micros
from tidemill.core.watermarks import END


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicBounds:
    """What a log says of a topic at one moment: identity, and for each partition the offsets it holds.

    Partitions that are `waiting` go on behind their end, once a transaction that is open there has ended.
    """

    topic_id: str
    partitions: Mapping[int, OffsetRange]
    waiting: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """At most so many records in one batch, over all inputs, and of one topic-partition; None for no limit."""

    records: int | None = None
    of_partition: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.records, self.of_partition):
            if limit is not None and limit < 1:
                raise ValueError(f"a read limit is at least 1, found {limit}")

    def apply(self, backlog: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """The first offsets of each range, `records` in all: shares in proportion to what each holds.

        What rounding leaves goes one by one to the smallest shares, so that the limit is used up and a short range
        is not starved for ever.
        """
        if self.of_partition is not None:
            backlog = [r.take(self.of_partition) for r in backlog]
        total = sum(len(r) for r in backlog)
        if self.records is None or total <= self.records:
            return tuple(backlog)
        shares = [len(r) * self.records // total for r in backlog]
        spare = self.records - sum(shares)
        for index in sorted(range(len(shares)), key=shares.__getitem__):
            if spare and shares[index] < len(backlog[index]):
                shares[index] += 1
                spare -= 1
        return tuple(item.take(share) for item, share in zip(backlog, shares, strict=True))


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
) -> BatchPlan | None:
    """The next batch, or None when there is nothing to do.

    Partitions that are known to be `silent` are idle as soon as nothing of them is left to read.

    There is something to do when the log has records beyond the position, when an idle partition lets the watermark
    move, when the input is drained and windows are open, or when an input begins at the end of its topic: the batch
    remembers where that was. `drain` takes effect in the plan that reaches the end of
    the log.

    Raises:
        TopicRecreated: a topic has the name of the one that was read but another identity.
        OffsetsLost: the log no longer holds, or does not yet hold, the next offset to read.
    """
    taken = _taken(flow, position, bounds, limit)
    timeout = None if flow.spec.idle_timeout is None else micros(flow.spec.idle_timeout)
    topics = {
        topic: _topic_plan(
            position.topics.get(topic),
            bounds[topic],
            ranges,
            clock=micros(clock),
            idle_timeout=timeout,
            silent=silent,
        )
        for topic, ranges in taken.items()
    }
    at_end = all(_reads_to_end(topic, bounds[name]) for name, topic in topics.items())
    plan = BatchPlan(
        pipeline=flow.name,
        batch_id=batch_id,
        kind=Kind.LIVE,
        clock=clock,
        position=position,
        topics=topics,
        logical_hash=flow.logical_hash,
        drain=drain and at_end and position.watermark < END,
        skipped=_skipped(flow, position, bounds) or None,
    )
    delays = {i.topic: micros(i.delay) for i in flow.inputs}
    moves = plan.watermark_after({}, delays) > position.watermark
    begins = any(i.start is StartFrom.LATEST and i.topic not in position.topics for i in flow.inputs)
    return plan if plan.records or moves or begins else None


def _taken(
    flow: Flow, position: Position, bounds: Mapping[str, TopicBounds], limit: ReadLimit
) -> dict[str, tuple[OffsetRange, ...]]:
    """The offsets of each topic that the batch reads, a range for every partition."""
    backlog = {i.topic: _backlog(flow, i, position.topics.get(i.topic), bounds[i.topic]) for i in flow.inputs}
    taken = iter(limit.apply([r for ranges in backlog.values() for r in ranges]))
    return {topic: tuple(next(taken) for _ in ranges) for topic, ranges in backlog.items()}


def _backlog(flow: Flow, source: Input, before: TopicPosition | None, bounds: TopicBounds) -> tuple[OffsetRange, ...]:
    if before is not None and before.topic_id != bounds.topic_id:
        raise TopicRecreated(
            f"{flow.name}: topic `{source.topic}` was deleted and created again: expected id {before.topic_id}, "
            f"found {bounds.topic_id}; its offsets mean other records now",
            fix="read it under another pipeline name, or put the old topic back",
        )
    held = [available for _, available in sorted(bounds.partitions.items())]
    return tuple(_rest(flow, source.start, before, available) for available in held)


def _skipped(flow: Flow, position: Position, bounds: Mapping[str, TopicBounds]) -> tuple[OffsetRange, ...]:
    """What the log lost of what comes next, where the pipeline goes on without it."""
    return tuple(
        OffsetRange(held.topic_partition, offset, held.from_offset)
        for topic, before in position.topics.items()
        for partition, offset in before.offsets.items()
        if topic in bounds
        and (held := bounds[topic].partitions.get(partition)) is not None
        and offset < held.from_offset
    )


def _rest(flow: Flow, start: StartFrom, before: TopicPosition | None, available: OffsetRange) -> OffsetRange:
    tp, held_from, end = available.topic_partition, available.from_offset, available.until_offset
    committed = before.offsets.get(tp.partition) if before else None
    if committed is None:
        latest = before is None and start is StartFrom.LATEST
        return OffsetRange(tp, end if latest else held_from, end)
    pipeline = flow.name
    if committed < held_from and flow.spec.on_loss is OnLoss.SKIP:
        return available
    if committed < held_from:
        raise OffsetsLost(
            f"{pipeline}: {tp}: offsets {committed} to {held_from - 1} are gone: retention passed the committed "
            f"offset {committed}, the log now starts at {held_from}; nothing was moved",
            fix='put the missing segments back, or declare on_loss="skip": it goes on without them and says so',
        )
    if committed > end:
        raise OffsetsLost(
            f"{pipeline}: {tp}: the log ends at {end}, before the committed offset {committed}: records that were "
            "read are not there any more; nothing was moved",
            fix="put the log back as it was; it must never lose its end",
        )
    return OffsetRange(tp, committed, end)


def _topic_plan(  # noqa: PLR0913  what is idle depends on all of it
    before: TopicPosition | None,
    bounds: TopicBounds,
    ranges: tuple[OffsetRange, ...],
    *,
    clock: int,
    idle_timeout: int | None,
    silent: Collection[TopicPartition],
) -> TopicPlan:
    idle = []
    for item in ranges:
        partition = item.topic_partition.partition
        known = before.clocks.get(partition) if before else None
        # A partition with records that a limit or an open transaction keeps back is slow, not silent.
        has_more = item.from_offset < bounds.partitions[partition].until_offset or partition in bounds.waiting
        is_idle = known is not None and known.is_idle(clock=clock, timeout=idle_timeout)
        if not has_more and (is_idle or item.topic_partition in silent):
            idle.append(partition)
    return TopicPlan(topic_id=bounds.topic_id, ranges=ranges, idle=tuple(idle))


def _reads_to_end(topic: TopicPlan, bounds: TopicBounds) -> bool:
    ends = (r.until_offset == bounds.partitions[r.topic_partition.partition].until_offset for r in topic.ranges)
    return not bounds.waiting and all(ends)
