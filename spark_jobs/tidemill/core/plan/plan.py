"""Plans: everything that a batch may read, decided before any work starts. A batch is a pure function of its plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.plan.jobs import Backfill
from tidemill.core.plan.kinds import Fold, Ranges, Redefined, Repair, Rewind, Switch
from tidemill.core.plan.position import Gone, Position, TopicPosition
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END, PartitionClock, advance


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
    """What a batch reads of one topic: a range of every partition that the log shows, some of them empty.

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
    `logical_hash` identifies declaration and contracts, `semantics` what the code makes of them.

    A live batch takes the next offsets, in `topics`; those that it `skipped` were gone. Partitions that were read
    before and that the log does not show are `missing`; with this plan somebody declares some of them `gone`, or that
    numbers are `redefined`: from it on they mean something else. Others (`tidemill.core.plan.kinds`) read `again` what
    was read before: a repair what it names, a backfill the next part of its job, which `backfill` shows without this
    batch's slice and with what is left after it.
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
    missing: tuple[TopicPartition, ...] | None = None
    gone: tuple[Gone, ...] | None = None
    redefined: Redefined | None = None
    semantics: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether it takes the next offsets."""
        return self.kind is Kind.LIVE

    def ranges(self, topic: str) -> tuple[OffsetRange, ...]:
        """What it reads of a topic."""
        if (amended := self._amended) is not None:
            return amended.get(topic, ())
        return self.topics[topic].ranges if topic in self.topics else ()

    @property
    def _amended(self) -> Ranges | None:
        """What an amendment reads once more; None in a live batch."""
        return self.again if self.repair is None or self.repair.ranges is None else self.repair.ranges

    def topic_id(self, topic: str) -> str:
        """Which topic of that name is meant."""
        planned = self.topics.get(topic)
        return planned.topic_id if planned is not None else self.position.topics[topic].topic_id

    @property
    def known_topics(self) -> tuple[str, ...]:
        """Every topic that the pipeline has read or reads now."""
        return tuple({**self.position.topics, **self.topics, **(self._amended or {})})

    @property
    def reads(self) -> Ranges:
        """What it reads of each topic, without empty ranges."""
        found = self._amended or {t: topic.ranges for t, topic in self.topics.items()}
        return {topic: full for topic, ranges in found.items() if (full := tuple(filter(None, ranges)))}

    @property
    def records(self) -> int:
        """How many offsets the batch reads; in a log with gaps, at most that many records."""
        return sum(len(r) for ranges in self.reads.values() for r in ranges)

    @property
    def lateness_watermark(self) -> int:
        """The watermark that decides what is late, for the whole batch; of what is read again, what is forgotten is."""
        until = self.position.forgotten_until
        return self.position.watermark if self.is_live else BEGINNING if until is None else until

    def position_after(  # noqa: PLR0913  all that a position is
        self,
        attempt: int,
        max_event_times: Mapping[TopicPartition, int],
        delays: Mapping[str, int],
        *,
        shapes: Mapping[str, Mapping[str, str]],
        panes: Mapping[str, PaneSpan],
        merged: Collection[str] = (),
    ) -> Position:
        """The position once `attempt` is committed, which left state in `panes`; those of `merged` are merged ahead."""
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
                    gone=self.gone_after,
                    merged=merged,
                )

    @property
    def gone_after(self) -> tuple[Gone, ...] | None:
        """The partitions that are declared gone after this batch: those that come back are so no more."""
        missing = self.missing or ()
        known = {g.place: g for g in (*(self.position.gone or ()), *(self.gone or ())) if g.place in missing}
        return tuple(known[place] for place in sorted(known)) or None

    def topics_after(self, max_event_times: Mapping[TopicPartition, int]) -> Mapping[str, TopicPosition]:
        """The position in each topic after this batch accepted events of at most these times.

        What is known of partitions that the batch does not read stays as it is.
        """
        return {name: self._topic_after(name, topic, max_event_times) for name, topic in self.topics.items()}

    def _topic_after(self, name: str, topic: TopicPlan, max_event_times: Mapping[TopicPartition, int]) -> TopicPosition:
        before = self.position.topics.get(name)
        offsets, clocks = (dict(before.offsets), dict(before.clocks)) if before else ({}, {})
        for item in topic.ranges:
            partition, now = item.topic_partition.partition, micros(self.clock)
            known = before.clocks.get(partition) if before else None
            clock = known or PartitionClock(max_event_time=None, active_at=now)
            seen = max_event_times.get(item.topic_partition)
            clocks[partition] = clock.seen(seen, clock=now) if item else clock
            offsets[partition] = item.until_offset
        return TopicPosition(topic_id=topic.topic_id, offsets=offsets, clocks=clocks)

    def watermark_after(self, max_event_times: Mapping[TopicPartition, int], delays: Mapping[str, int]) -> int:
        """The pipeline's watermark after this batch; END when it drains. Only live batches and rewinds move it.

        A partition of which the plan has no range holds nothing back.
        """
        if self.rewind is not None:
            return self.rewind.position.watermark
        if not self.is_live:
            return self.position.watermark
        if self.drain:
            return END
        after = self.topics_after(max_event_times)
        read = (r.topic_partition for topic in self.topics.values() for r in topic.ranges)
        clocks = {tp: after[tp.topic].clocks[tp.partition] for tp in read}
        idle = [TopicPartition(name, p) for name, topic in self.topics.items() for p in topic.idle]
        return advance(self.position.watermark, clocks, delays, idle)
