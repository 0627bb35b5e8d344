"""Plans: everything that a batch may read, decided before any work starts.

Planning is a pure function of the last committed position, the bounds of the log, a read limit and a clock. A batch
is a pure function of its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.core.offsets import OffsetRange, TopicPartition
from tidemill.core.position import Position, TopicPosition
from tidemill.core.times import micros
from tidemill.core.watermarks import END, PartitionClock, advance


class Kind(StrEnum):
    """Why a batch exists."""

    LIVE = "live"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """What a batch reads of one topic: a range of every partition known, some of them empty.

    `idle` partitions do not hold back the watermark.
    """

    topic_id: str
    ranges: tuple[OffsetRange, ...]
    idle: tuple[int, ...] = ()

    @property
    def records(self) -> int:
        """The length of all ranges together."""
        return sum(len(r) for r in self.ranges)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The whole input of a batch; it never changes once it is in the ledger.

    `clock` is the only clock a batch knows. `position` is where the pipeline stood: its watermark decides what is
    late, its slices are the state that counts. `drain` says that the input has ended: every window closes.
    `logical_hash` identifies declaration and contracts.
    """

    pipeline: str
    batch_id: int
    kind: Kind
    clock: datetime
    position: Position
    topics: Mapping[str, TopicPlan]
    logical_hash: str
    drain: bool = False

    @property
    def records(self) -> int:
        """How many offsets the batch reads; in a log with gaps, at most that many records."""
        return sum(topic.records for topic in self.topics.values())

    @property
    def lateness_watermark(self) -> int:
        """The watermark that decides what is late, for the whole batch."""
        return self.position.watermark

    def topics_after(self, max_event_times: Mapping[TopicPartition, int]) -> Mapping[str, TopicPosition]:
        """The position in each topic after this batch accepted events of at most these times."""
        return {name: self._topic_after(name, topic, max_event_times) for name, topic in self.topics.items()}

    def _topic_after(self, name: str, topic: TopicPlan, max_event_times: Mapping[TopicPartition, int]) -> TopicPosition:
        before = self.position.topics.get(name)
        clocks: dict[int, PartitionClock] = {}
        for item in topic.ranges:
            partition, now = item.topic_partition.partition, micros(self.clock)
            known = before.clocks.get(partition) if before else None
            clock = known or PartitionClock(max_event_time=None, active_at=now)
            seen = max_event_times.get(item.topic_partition)
            clocks[partition] = clock.seen(seen, clock=now) if item else clock
        offsets = {r.topic_partition.partition: r.until_offset for r in topic.ranges}
        return TopicPosition(topic_id=topic.topic_id, offsets=offsets, clocks=clocks)

    def watermark_after(self, max_event_times: Mapping[TopicPartition, int], delays: Mapping[str, int]) -> int:
        """The pipeline's watermark after this batch; END when it drains."""
        if self.drain:
            return END
        clocks = {
            TopicPartition(name, partition): clock
            for name, topic in self.topics_after(max_event_times).items()
            for partition, clock in topic.clocks.items()
        }
        idle = [TopicPartition(name, p) for name, topic in self.topics.items() for p in topic.idle]
        return advance(self.position.watermark, clocks, delays, idle)
