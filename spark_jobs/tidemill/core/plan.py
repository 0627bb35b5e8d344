"""Plans: everything that a batch may read, decided before any work starts.

Planning is a pure function of the last committed position, the bounds of the log, a read limit and a clock. A batch
is a pure function of its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.core.amendments import Fold, Ranges, Repair, Rewind, Switch
from tidemill.core.offsets import OffsetRange, TopicPartition
from tidemill.core.position import Backfill, PaneSpan, Position, TopicPosition
from tidemill.core.times import micros
from tidemill.core.watermarks import BEGINNING, END, PartitionClock, advance


class Kind(StrEnum):
    """Why a batch exists."""

    LIVE = "live"
    REPAIR = "repair"
    BACKFILL = "backfill"
    REWIND = "rewind"
    SWITCH = "switch"
    FOLD = "fold"


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

    A live batch takes the next offsets, in `topics`; those that it `skipped` were gone. The others
    (`tidemill.core.amendments`) read `again` what was read before: a repair what it names, a backfill the next part of
    its job, which `backfill` shows without this batch's slice and with what is left after it.
    """

    pipeline: str
    batch_id: int
    kind: Kind
    clock: datetime
    position: Position
    topics: Mapping[str, TopicPlan]
    logical_hash: str
    drain: bool = False
    again: Ranges | None = None
    repair: Repair | None = None
    backfill: Backfill | None = None
    rewind: Rewind | None = None
    switch: Switch | None = None
    fold: Fold | None = None
    skipped: tuple[OffsetRange, ...] | None = None

    @property
    def is_live(self) -> bool:
        """Whether it takes the next offsets."""
        return self.kind is Kind.LIVE

    def ranges(self, topic: str) -> tuple[OffsetRange, ...]:
        """What it reads of a topic."""
        if self.again is not None:
            return self.again.get(topic, ())
        return self.topics[topic].ranges if topic in self.topics else ()

    def topic_id(self, topic: str) -> str:
        """Which topic of that name is meant."""
        planned = self.topics.get(topic)
        return planned.topic_id if planned is not None else self.position.topics[topic].topic_id

    @property
    def known_topics(self) -> tuple[str, ...]:
        """Every topic that the pipeline has read or reads now."""
        return tuple({**self.position.topics, **self.topics, **(self.again or {})})

    @property
    def reads(self) -> Ranges:
        """What it reads of each topic, without empty ranges."""
        found = {t: tuple(r for r in self.ranges(t) if r) for t in (*self.topics, *(self.again or ()))}
        return {topic: ranges for topic, ranges in found.items() if ranges}

    @property
    def records(self) -> int:
        """How many offsets the batch reads; in a log with gaps, at most that many records."""
        return sum(len(r) for ranges in self.reads.values() for r in ranges)

    @property
    def lateness_watermark(self) -> int:
        """The watermark that decides what is late, for the whole batch; what is read again is never late."""
        return self.position.watermark if self.is_live else BEGINNING

    def position_after(
        self,
        attempt: int,
        max_event_times: Mapping[TopicPartition, int],
        delays: Mapping[str, int],
        *,
        shapes: Mapping[str, Mapping[str, str]],
        panes: Mapping[str, PaneSpan],
    ) -> Position:
        """The position once `attempt` is committed, which left state in `panes`."""
        match self:
            case BatchPlan(rewind=Rewind() as rewind):
                return rewind.position.amended(batch_id=self.batch_id, attempt=attempt)
            case BatchPlan(backfill=Backfill() as job):
                done = job.after(self.batch_id, attempt, panes)
                return self.position.backfilled(done, batch_id=self.batch_id, attempt=attempt)
            case BatchPlan(fold=Fold() as fold):
                return self.position.amended(batch_id=self.batch_id, attempt=attempt, hidden=fold.batches)
            case BatchPlan(repair=Repair()) | BatchPlan(switch=Switch()):
                return self.position.amended(batch_id=self.batch_id, attempt=attempt)
            case _:
                return self.position.after(
                    batch_id=self.batch_id,
                    attempt=attempt,
                    topics=self.topics_after(max_event_times),
                    watermark=self.watermark_after(max_event_times, delays),
                    shapes=shapes,
                )

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
        """The pipeline's watermark after this batch; END when it drains. Only live batches and rewinds move it."""
        if self.rewind is not None:
            return self.rewind.position.watermark
        if not self.is_live:
            return self.position.watermark
        if self.drain:
            return END
        clocks = {
            TopicPartition(name, partition): clock
            for name, topic in self.topics_after(max_event_times).items()
            for partition, clock in topic.clocks.items()
        }
        idle = [TopicPartition(name, p) for name, topic in self.topics.items() for p in topic.idle]
        return advance(self.position.watermark, clocks, delays, idle)
