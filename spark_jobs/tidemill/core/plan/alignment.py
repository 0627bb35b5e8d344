"""Fast partitions wait for slow ones: no batch puts a partition too far ahead of the slowest one in event time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidemill.core.bind.flow import Flow
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.amendments import Ranges, count
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import clocks_of
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, PartitionClock, Reached

_GREATEST = 2**62
"""No event time or delay comes near it, so that both can be added in 64 bits."""


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


@dataclass(frozen=True, slots=True)
class Found:
    """What looks have found so far, while one plan is made.

    `seen` has the watermarks to which partitions would come; of one that waits, this is the place where it is.
    `refused` has those whose first record lies beyond a watermark, and the greatest such watermark.
    """

    seen: dict[TopicPartition, int] = field(default_factory=dict)
    refused: dict[TopicPartition, int] = field(default_factory=dict)


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
        marks, most = self._watermarks(self.position.clocks), self.most(Found())
        return _only(self.backlog, lambda tp: marks.get(tp, BEGINNING) <= most)

    def cut(self, plan: BatchPlan, look: Look, found: Found) -> Ranges:
        """The offsets of a plan, each range up to the first record that would put its partition too far ahead.

        What this look finds is added to what earlier ones `found`.
        """
        ranges = {topic: at.ranges for topic, at in plan.topics.items()}
        read = {each.topic_partition for items in ranges.values() for each in items if each}
        # As long as the slowest partition stays where it is, one look is enough.
        likely = self.most(found)
        first = look(self.flow, plan, self._bounds(read, likely))
        after = clocks_of(plan.topics, plan.topics_after(first.reached))
        marks = self._watermarks({**self.position.clocks, **{tp: after[tp] for tp in read}})
        # A plan with fewer records of a partition may come less far.
        found.seen.update({tp: min(marks[tp], found.seen.get(tp, marks[tp])) for tp in read if tp in marks})
        most = self.most(found)
        ahead = {tp for tp in read if marks.get(tp, BEGINNING) > most}
        if not ahead:
            return ranges
        too_far = first.too_far if most == likely else look(self.flow, plan, self._bounds(ahead, most)).too_far
        ends = {tp: offset for tp, offset in too_far.items() if tp in ahead}
        cut = {topic: tuple(_until(item, ends) for item in items) for topic, items in ranges.items()}
        left = {item.topic_partition for items in cut.values() for item in items if item}
        found.refused.update(dict.fromkeys(read - left, most))
        return cut

    def next(self, readable: Ranges, found: Found) -> Ranges:
        """What to look at after a plan of which nothing was left: what else is `readable`, or else in the backlog.

        Partitions of which it is known that their first record is too far ahead are left out.
        """
        most = self.most(found)
        waiting = {tp for tp, bound in found.refused.items() if bound >= most}
        left = _only(readable, lambda tp: tp not in waiting)
        return left if count(left) else _only(self.backlog, lambda tp: tp not in waiting)

    def most(self, found: Found) -> int:
        """The greatest watermark that a partition may come to, as far as it is known."""
        assert self.flow.spec.max_drift is not None
        marks = {**self._watermarks(self.position.clocks), **found.seen}
        return min(min(marks.values(), default=BEGINNING) + micros(self.flow.spec.max_drift), _GREATEST)

    def _bounds(self, places: Iterable[TopicPartition], most: int) -> Mapping[TopicPartition, int]:
        return {tp: most + (self.flow.delays[tp.topic] or 0) for tp in places}

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
    if look is None:
        return planned(alignment.near())
    found = Found()
    readable = alignment.next(alignment.near(), found)
    while count(readable):
        plan = planned(readable)
        cut = alignment.cut(plan, look, found)
        if plan.records == count(alignment.backlog):
            return planned(cut)
        if any(map(any, cut.values())):
            return planned(_fuller(alignment, planned, look, readable, cut))
        readable = alignment.next(readable, found)
    return planned(readable)


def _fuller(
    alignment: Alignment, planned: Callable[[Ranges], BatchPlan], look: Look, readable: Ranges, cut: Ranges
) -> Ranges:
    """`cut`, or more: partitions that were cut leave what is left of their share of the limit to the others."""
    limited = planned(readable)
    if limited.records in {count(readable), count(cut)}:
        return cut
    shares = {each.topic_partition: each for topic in limited.topics.values() for each in topic.ranges}
    ends = {
        r.topic_partition: r.until_offset for items in cut.values() for r in items if r != shares[r.topic_partition]
    }
    plan = planned({topic: tuple(_until(item, ends) for item in items) for topic, items in readable.items()})
    return max(cut, alignment.cut(plan, look, Found()), key=count)


def _only(ranges: Ranges, wanted: Callable[[TopicPartition], bool]) -> Ranges:
    return {t: tuple(r if wanted(r.topic_partition) else r.take(0) for r in items) for t, items in ranges.items()}


def _until(item: OffsetRange, ends: Mapping[TopicPartition, int]) -> OffsetRange:
    until = ends.get(item.topic_partition, item.until_offset)
    return OffsetRange(item.topic_partition, item.from_offset, until)
