"""Which batches read which offsets, and which of them a backfill must read again together.

State adds up slice by slice, so a backfill must replace whole slices: its offsets grow until they hold every record of
every slice that they touch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tidemill.core.errors import AmendmentError, OffsetsLost
from tidemill.core.history.index import IndexedBatch, indexed
from tidemill.core.log.offsets import OffsetRange, TopicPartition, merge_ranges
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, SliceSet, batch_ranges
from tidemill.core.protocol.events import Event, Planned
from tidemill.core.time.spans import PaneSpan, united_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """A batch whose slice is visible, and what the slice contains.

    `ranges` are the offsets in the slice, `batches` the batches that read them: this one, and those that it folded.
    """

    batch: IndexedBatch
    ranges: Ranges
    batches: tuple[BatchRange, ...]

    @property
    def batch_id(self) -> int:
        """The id of the batch."""
        return self.batch.batch_id

    @property
    def panes(self) -> Mapping[str, PaneSpan]:
        """The panes that its state lies in, by published table."""
        return self.batch.panes

    def touches(self, wanted: Ranges) -> bool:
        """Whether it read some of these offsets."""
        mine = self.ranges
        return any(a.overlaps(b) for topic, items in wanted.items() for a in items for b in mine.get(topic, ()))

    def lies_in(self, table: str, low: int, high: int) -> bool:
        """Whether some of its state may lie in panes that start in `[low, high)`."""
        span = self.panes.get(table)
        return span is not None and span.first < high and span.last >= low


def coverage(events: Iterable[Event], slices: SliceSet) -> tuple[Cover, ...]:
    """The batches of a whole ledger whose slices are visible and hold records that were read, in order."""
    return covers_of(indexed(enumerate(events, start=1), lambda _: ()), slices)


def covers_of(batches: Iterable[IndexedBatch], slices: SliceSet) -> tuple[Cover, ...]:
    """Those of `batches` whose slices are visible and hold records that were read."""
    visible = (b for b in batches if b.reads and slices.attempt_of(b.batch_id) == b.attempt)
    return tuple(Cover(batch=b, ranges=b.ranges, batches=b.batches) for b in visible)


def plans_of(events: Iterable[Event]) -> Iterator[BatchPlan]:
    """All plans, in order, whether their batches committed or not."""
    return (event.plan for event in events if isinstance(event, Planned))


def first_offsets(events: Iterable[Event]) -> Mapping[TopicPartition, int]:
    """The first offset that a live batch planned to read, by topic-partition."""
    found: dict[TopicPartition, int] = {}
    for plan in plans_of(events):
        for topic in plan.topics.values():
            for item in topic.ranges:
                found.setdefault(item.topic_partition, item.from_offset)
    return found


def idle_in(plan: BatchPlan | None) -> tuple[TopicPartition, ...]:
    """The topic-partitions that were idle for a batch; empty for None."""
    topics = {} if plan is None else plan.topics
    return tuple(TopicPartition(t, p) for t, topic in topics.items() for p in topic.idle)


def united(parts: Iterable[Ranges]) -> Ranges:
    """The union of these offsets, by topic."""
    by_topic: dict[str, list[OffsetRange]] = {}
    for part in parts:
        for topic, ranges in part.items():
            by_topic.setdefault(topic, []).extend(ranges)
    return {topic: merge_ranges(ranges) for topic, ranges in sorted(by_topic.items())}


def batches_of(covers: Iterable[Cover]) -> tuple[BatchRange, ...]:
    """The ids of these batches and of the batches that they folded."""
    return batch_ranges(r for c in covers for r in c.batches)


def panes_of(covers: Sequence[Cover]) -> Mapping[str, tuple[PaneSpan, ...]]:
    """The panes that the state of these batches lies in, by table, in as few spans as possible."""
    tables = dict.fromkeys(chain.from_iterable(c.panes for c in covers))
    return {t: united_spans(c.panes[t] for c in covers if t in c.panes) for t in tables}


def still_held(
    pipeline: str, covers: Sequence[Cover], held: Mapping[str, Mapping[int, OffsetRange]], *, accept_loss: bool
) -> tuple[tuple[Cover, ...], Ranges]:
    """The batches to supersede, and what the log holds of their offsets.

    With `accept_loss`, a batch is left alone when the log holds none of its records; for other batches, lost records
    are dropped from the results. `held` has every topic that is read, without the partitions that are missing.

    Raises:
        OffsetsLost: the log lost some offsets, and `accept_loss` is false.
        AmendmentError: the declaration no longer reads a topic.
    """
    kept, ranges, lost = [], [], []
    for cover in covers:
        if strange := sorted(cover.ranges.keys() - held.keys()):
            raise AmendmentError(
                f"{pipeline}: batch {cover.batch_id} read {', '.join(strange)}, which the declaration no longer reads",
                fix=f"build everything again without it: `tidemill rebuild {pipeline}`",
            )
        there = {
            topic: tuple(part for r in items if (part := _inside(r, held[topic].get(r.topic_partition.partition))))
            for topic, items in cover.ranges.items()
        }
        missing = [
            part
            for topic, items in cover.ranges.items()
            for r in items
            for part in r.without(held[topic].get(r.topic_partition.partition))
        ]
        lost += missing
        if any(there.values()) or not missing:
            kept.append(cover)
            ranges.append(there)
    if lost and not accept_loss:
        gone = "; ".join(
            f"{r.topic_partition}: offsets {r.from_offset} to {r.until_offset - 1}" for r in merge_ranges(lost)
        )
        raise OffsetsLost(
            f"{pipeline}: the log no longer holds what would be read again: {gone}; nothing was moved",
            fix="choose a later start, or say --accept-loss: what is gone then counts in no window any more",
        )
    return tuple(kept), {topic: items for topic, items in united(ranges).items() if items}


def _inside(item: OffsetRange, held: OffsetRange | None) -> OffsetRange | None:
    if held is None:
        return None
    low, high = max(item.from_offset, held.from_offset), min(item.until_offset, held.until_offset)
    return OffsetRange(item.topic_partition, low, high) if low < high else None
