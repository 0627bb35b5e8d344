"""Fast partitions wait for slow ones: no batch puts a partition too far ahead of the slowest one in event time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.bind.flow import Flow
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import clocks_of
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, PartitionClock, Reached

Ranges = Mapping[str, tuple[OffsetRange, ...]]
"""Offsets by topic: one range for each partition."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at the records of a plan finds.

    `reached` says how far accepted ones come. `too_far` has, for partitions with a bound, the offset of the first
    accepted record beyond it; partitions without such a record are missing.
    """

    reached: Reached
    too_far: Mapping[TopicPartition, int]


Look = Callable[[Flow, BatchPlan, Mapping[TopicPartition, int]], Seen]
"""Reads the records of a plan before it is written. The bounds, by partition, are in microseconds: of event time, or of
the mark where records tell the watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """How far ahead partitions may be: their watermark at most `max_drift` after that of the slowest one.

    `backlog` has all offsets that can be read; a partition with some is not idle, also while it waits. Idle partitions
    hold nobody back, nor do those whose watermark nobody knows yet. `clock` is that of the plan, in microseconds.
    """

    flow: Flow
    position: Position
    backlog: Ranges
    clock: int

    @staticmethod
    def of(flow: Flow, position: Position, backlog: Ranges, *, clock: datetime) -> Alignment | None:
        """The alignment of a pipeline; None if it declares no `max_drift`."""
        if flow.spec.max_drift is None:
            return None
        return Alignment(flow=flow, position=position, backlog=backlog, clock=micros(clock))

    def near(self) -> Ranges:
        """The offsets to read of partitions that are not too far ahead yet; none of the others."""
        marks = self._watermarks(self.position.clocks)
        most = self._most(marks)
        return _only(self.backlog, lambda tp: marks.get(tp, BEGINNING) <= most)

    def cut(self, plan: BatchPlan, look: Look, seen: dict[TopicPartition, int]) -> Ranges:
        """The offsets of a plan, each range up to the first record that would put its partition too far ahead.

        `seen` has the watermarks that earlier looks found for partitions, which count as the place where a partition
        is that waits; what this one finds is added.
        """
        ranges = {topic: at.ranges for topic, at in plan.topics.items()}
        after = clocks_of(plan.topics, plan.topics_after(look(self.flow, plan, {}).reached))
        read = {each.topic_partition for items in ranges.values() for each in items if each}
        marks = self._watermarks({**self.position.clocks, **{tp: after[tp] for tp in read}})
        seen.update({tp: mark for tp, mark in marks.items() if tp in read})
        most = self._most({**marks, **seen})
        ahead = [tp for tp in read if marks.get(tp, BEGINNING) > most]
        if not ahead:
            return ranges
        too_far = look(self.flow, plan, {tp: most + (self.flow.delays[tp.topic] or 0) for tp in ahead}).too_far
        return {topic: tuple(_until(item, too_far) for item in items) for topic, items in ranges.items()}

    def _most(self, watermarks: Mapping[TopicPartition, int]) -> int:
        assert self.flow.spec.max_drift is not None
        return min(watermarks.values(), default=BEGINNING) + micros(self.flow.spec.max_drift)

    def _watermarks(self, clocks: Mapping[TopicPartition, PartitionClock]) -> Mapping[TopicPartition, int]:
        """The watermarks of partitions that hold others back."""
        timeout = None if self.flow.spec.idle_timeout is None else micros(self.flow.spec.idle_timeout)
        found: dict[TopicPartition, int] = {}
        for each in (item for ranges in self.backlog.values() for item in ranges):
            place, known = each.topic_partition, clocks.get(each.topic_partition)
            if known is None or (mark := known.watermark(self.flow.delays[place.topic])) == BEGINNING:
                continue
            if each or not known.is_idle(clock=self.clock, timeout=timeout):
                found[place] = mark
        return found


def planned_near(alignment: Alignment, planned: Callable[[Ranges], BatchPlan], look: Look | None) -> BatchPlan:
    """The plan of the offsets that a batch may read; `planned` makes one of offsets, under the read limit.

    Partitions that are too far ahead already leave their share of the limit to others, if these may read anything. If
    all of a plan is too far ahead, those that the limit has left out are next. Once all have been looked at, the
    slowest of those that have records is known: so none waits for one that waits for it.
    """
    near, seen = alignment.near(), dict[TopicPartition, int]()
    if look is None:
        return planned(near)
    for readable in (near, alignment.backlog, alignment.backlog):
        while (plan := planned(readable)).records:
            cut = alignment.cut(plan, look, seen)
            if any(map(any, cut.values())) or plan.records == _count(alignment.backlog):
                return planned(cut)
            readable = _without(readable, plan)  # noqa: PLW2901  what is left of it
    return plan


def _count(ranges: Ranges) -> int:
    return sum(len(item) for items in ranges.values() for item in items)


def _without(ranges: Ranges, plan: BatchPlan) -> Ranges:
    read = {each.topic_partition for topic in plan.topics.values() for each in topic.ranges if each}
    return _only(ranges, lambda tp: tp not in read)


def _only(ranges: Ranges, wanted: Callable[[TopicPartition], bool]) -> Ranges:
    return {t: tuple(r if wanted(r.topic_partition) else r.take(0) for r in items) for t, items in ranges.items()}


def _until(item: OffsetRange, ends: Mapping[TopicPartition, int]) -> OffsetRange:
    until = ends.get(item.topic_partition, item.until_offset)
    return OffsetRange(item.topic_partition, item.from_offset, until)
