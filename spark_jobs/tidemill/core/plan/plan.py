"""Plans: everything that a batch may read, decided before any work starts. A batch is a pure function of its plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, assert_never

from tidemill.core.log.offsets import OffsetRange
from tidemill.core.plan.amendments import Fold, Ranges, Repair, Rewind, Switch
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Gone, Position, TopicPosition
from tidemill.core.plan.stored_plan import StoredPlan, keys_of
from tidemill.core.plan.work import BackfillStep, Kind, Live, Reading, TopicPlan, Work, clocks_of, kind_of, reads_of
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END, Delays, PartitionClock, Reached, advance, lagging, least

_AS_IT_IS = ("pipeline", "batch_id", "clock", "position", "logical_hash", "semantics")
"""The fields that are stored unchanged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan:
    """The whole input of a batch; it never changes once it is in the ledger.

    `clock` is the only clock a batch knows. `position` is the pipeline's position before the batch: its watermark
    decides which records are late, its slices are the state that counts. `logical_hash` identifies declaration and
    contracts, `semantics` the version of the code (`tidemill.core.identity.semantics`). `work` is what the batch does.
    """

    pipeline: str
    batch_id: int
    clock: datetime
    position: Position
    logical_hash: str
    work: Work
    semantics: int | None = None

    stored_form: ClassVar[type[StoredPlan]] = StoredPlan

    def stored(self) -> StoredPlan:
        """The plan in the form that the ledger stores."""
        return StoredPlan(kind=self.kind, **{name: getattr(self, name) for name in _AS_IT_IS}, **keys_of(self.work))

    @staticmethod
    def restored(plan: StoredPlan) -> BatchPlan:
        """The plan from its stored form.

        Raises:
            LedgerDamaged: a part is missing that its kind of work needs.
        """
        return BatchPlan(work=plan.work, **{name: getattr(plan, name) for name in _AS_IT_IS})

    @property
    def kind(self) -> Kind:
        """The kind of the batch's work."""
        return kind_of(self.work)

    @property
    def live(self) -> Live | None:
        """The work of a live batch, which reads the next offsets; None for other batches."""
        return self.work if isinstance(self.work, Live) else None

    @property
    def drains(self) -> bool:
        """Whether every window closes, because the input has ended."""
        return self.live is not None and self.live.drain

    @property
    def job(self) -> Backfill | None:
        """The backfill that the batch belongs to; None for other batches."""
        return self.work.job if isinstance(self.work, BackfillStep) else None

    @property
    def topics(self) -> Mapping[str, TopicPlan]:
        """The next offsets that a live batch reads, by topic; empty for other batches."""
        return self.live.topics if self.live is not None else {}

    def ranges(self, topic: str) -> tuple[OffsetRange, ...]:
        """The offsets of a topic that the batch reads."""
        return reads_of(self.work).get(topic, ())

    def topic_id(self, topic: str) -> str:
        """The id of the topic that the plan means by this name."""
        planned = self.topics.get(topic)
        return planned.topic_id if planned is not None else self.position.topics[topic].topic_id

    @property
    def known_topics(self) -> tuple[str, ...]:
        """Every topic that the pipeline has read so far or reads in this batch."""
        return tuple({**self.position.topics, **reads_of(self.work)})

    @property
    def reads(self) -> Ranges:
        """The offsets that the batch reads, by topic, without empty ranges."""
        found = reads_of(self.work)
        return {topic: full for topic, ranges in found.items() if (full := tuple(filter(None, ranges)))}

    @property
    def records(self) -> int:
        """How many offsets the batch reads; in a log with gaps, at most that many records."""
        return sum(len(r) for ranges in self.reads.values() for r in ranges)

    @property
    def lateness_watermark(self) -> int:
        """The watermark that decides, for the whole batch, what is late; in amendments, only forgotten windows are."""
        until = self.position.forgotten_until
        return self.position.watermark if self.live else BEGINNING if until is None else until

    def late_until(self, table: str) -> int:
        """The watermark that decides what is late for one table; it may stay behind the pipeline's."""
        return self.position.watermark_of(table) if self.live else self.lateness_watermark

    def position_after(  # noqa: PLR0913  all that a position is
        self,
        attempt: int,
        reached: Reached,
        delays: Delays,
        *,
        shapes: Mapping[str, Mapping[str, str]],
        panes: Mapping[str, PaneSpan],
        merged: Collection[str] = (),
        lags: Mapping[str, int] | None = None,
    ) -> Position:
        """The position once `attempt` is committed, with state in `panes`; the rest as in `Position.after`."""
        match self.work:
            case Rewind(position=position):
                return position.amended(batch_id=self.batch_id, attempt=attempt)
            case BackfillStep(job=job):
                done = job.after(self.batch_id, attempt, panes)
                return self.position.backfilled(done, batch_id=self.batch_id, attempt=attempt)
            case Fold(batches=batches):
                return self.position.amended(batch_id=self.batch_id, attempt=attempt, hidden=batches)
            case Repair() | Switch() | Reading():
                found = self.position.amended(batch_id=self.batch_id, attempt=attempt)
                anew = isinstance(self.work, Repair) and self.work.replay is not None
                return replace(found, firings_from=self.batch_id) if anew else found
            case Live():
                return self.position.after(
                    batch_id=self.batch_id,
                    attempt=attempt,
                    topics=self.topics_after(reached),
                    watermark=self.watermark_after(reached, delays),
                    shapes=shapes,
                    gone=self.gone_after,
                    merged=merged,
                    lagging=self.lagging_after(reached, delays, lags or {}),
                )
            case _:
                assert_never(self.work)

    @property
    def gone_after(self) -> tuple[Gone, ...] | None:
        """The partitions that are declared gone after this batch, without those that came back."""
        if self.live is None:
            return self.position.gone
        missing = self.live.missing or ()
        known = {g.place: g for g in (*(self.position.gone or ()), *(self.live.gone or ())) if g.place in missing}
        return tuple(known[place] for place in sorted(known)) or None

    def topics_after(self, reached: Reached) -> Mapping[str, TopicPosition]:
        """The position in each topic after this batch, whose accepted records came so far.

        Partitions that the batch does not read keep their offsets and clocks.
        """
        return {name: self._topic_after(name, topic, reached) for name, topic in self.topics.items()}

    def _topic_after(self, name: str, topic: TopicPlan, reached: Reached) -> TopicPosition:
        before = self.position.topics.get(name)
        offsets, clocks = (dict(before.offsets), dict(before.clocks)) if before else ({}, {})
        for item in topic.ranges:
            partition, now = item.topic_partition.partition, micros(self.clock)
            known = before.clocks.get(partition) if before else None
            clock = known or PartitionClock(max_event_time=None, active_at=now)
            furthest = reached.get(item.topic_partition)
            clock = clock.seen(furthest, clock=now) if item else clock
            clocks[partition] = clock.told((topic.marks or {}).get(partition))
            offsets[partition] = item.until_offset
        return TopicPosition(topic_id=topic.topic_id, offsets=offsets, clocks=clocks)

    def watermark_after(self, reached: Reached, delays: Delays) -> int:
        """The pipeline's watermark after this batch; END when it drains. Only live batches and rewinds move it.

        A partition without a range in the plan does not hold the watermark back.
        """
        if isinstance(self.work, Rewind):
            return self.work.position.watermark
        if self.live is None:
            return self.position.watermark
        clocks = clocks_of(self.topics, self.topics_after(reached))
        return END if self.drains else advance(self.position.watermark, clocks, delays)

    def lagging_after(self, reached: Reached, delays: Delays, lags: Mapping[str, int]) -> Mapping[str, int] | None:
        """The watermarks of tables that stay behind the pipeline's by `lags` after this live batch."""
        found = least(clocks_of(self.topics, self.topics_after(reached)), delays)
        return lagging(self.watermark_after(reached, delays), found, lags, self.position.watermark_of)
