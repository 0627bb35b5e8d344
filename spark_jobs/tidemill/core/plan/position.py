"""Where a pipeline stands after a commit: all that the next plan needs to know about the past."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.slices import BatchRange, SliceSet
from tidemill.core.time.watermarks import BEGINNING, PartitionClock


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPosition:
    """The next offset to read of each partition of one topic, and what is known of its time.

    `offsets` and `clocks` have the same partitions: every one that was ever read, also those that the log lost.
    """

    topic_id: str
    offsets: Mapping[int, int]
    clocks: Mapping[int, PartitionClock]

    def __post_init__(self) -> None:
        if self.offsets.keys() != self.clocks.keys():
            raise ValueError(f"offsets of {sorted(self.offsets)} but clocks of {sorted(self.clocks)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A topic-partition that somebody declared gone: batches go on without it until the log shows it again."""

    place: TopicPartition
    by: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """How a commit left a table: its version, its identity, and the last transaction of the pipeline in it."""

    version: int
    table_id: str
    transaction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """From `batch_id` on the numbers of a table mean what they mean now, because somebody decided it.

    Of a table that earlier batches left out, windows that start after `event_time`, in microseconds, are whole: live
    batches publish no others.
    """

    batch_id: int
    by: str
    why: str = ""
    event_time: int | None = None

    def completed(self) -> Since:
        """The same, once windows lack nothing any more."""
        return replace(self, event_time=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The outcome of all commits so far. `batch_id` is the last one committed, 0 before the first.

    `shapes` says for each windowed table what its state means (`WindowedSink.shape`), `tables` how each table was left
    by the last commit that wrote it. `backfill` is the job that waits for its next batch. `gone` are the partitions
    that the log does not show and that somebody declared gone. `meanings` says for each table that the last batch
    published what its numbers mean (`tidemill.core.bind.meaning`), `since` from which batch on where that changed,
    `matched` which topics patterns matched for it. `merged_since` says for each table whose panes are
    merged ahead from which event time on these nodes count (`tidemill.core.time.pane_tree`).
    Windows that end at `forgotten_until` or earlier never fire from state again, because that may be gone
    (`tidemill.core.repair.state_retention`); None while everything is there.
    """

    batch_id: int = 0
    watermark: int = BEGINNING
    topics: Mapping[str, TopicPosition] = field(default_factory=dict)
    slices: SliceSet = field(default_factory=SliceSet)
    shapes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tables: Mapping[str, TableMark] = field(default_factory=dict)
    backfill: Backfill | None = None
    gone: tuple[Gone, ...] | None = None
    meanings: Mapping[str, Mapping[str, str]] | None = None
    since: Mapping[str, Since] | None = None
    merged_since: Mapping[str, int] | None = None
    forgotten_until: int | None = None
    matched: Mapping[str, tuple[str, ...]] | None = None

    def first_of_meaning(self, table: str) -> int:
        """The first batch of which the numbers of a table mean what they mean now; 0 where that never changed."""
        found = (self.since or {}).get(table)
        return 0 if found is None else found.batch_id

    def whole_after(self, table: str) -> int:
        """The windows of a table that start after this event time lack nothing of what batches read."""
        found = (self.since or {}).get(table)
        return BEGINNING if found is None or found.event_time is None else found.event_time

    @property
    def clocks(self) -> Mapping[TopicPartition, PartitionClock]:
        """The clocks of all partitions of all topics."""
        return {
            TopicPartition(name, partition): clock
            for name, topic in self.topics.items()
            for partition, clock in topic.clocks.items()
        }

    def after(  # noqa: PLR0913  all that a position is
        self,
        *,
        batch_id: int,
        attempt: int,
        topics: Mapping[str, TopicPosition],
        watermark: int,
        shapes: Mapping[str, Mapping[str, str]] | None = None,
        tables: Mapping[str, TableMark] | None = None,
        gone: tuple[Gone, ...] | None = None,
        merged: Collection[str] = (),
    ) -> Position:
        """The position once `attempt` of `batch_id` is committed. `merged` are the tables with panes merged ahead."""
        if watermark < self.watermark:
            raise ValueError(f"the watermark would go back from {self.watermark} to {watermark}")
        return replace(
            self,
            batch_id=batch_id,
            watermark=watermark,
            topics={**self.topics, **topics},
            slices=self.slices.add(batch_id, attempt),
            shapes={**self.shapes, **(shapes or {})},
            tables={**self.tables, **(tables or {})},
            gone=gone,
            merged_since=self._merged_since(merged),
        )

    def _merged_since(self, merged: Collection[str]) -> Mapping[str, int] | None:
        known = self.merged_since or {}
        return {table: known.get(table, self.watermark) for table in merged} or None

    def _from_now(self) -> Mapping[str, int] | None:
        return None if self.merged_since is None else dict.fromkeys(self.merged_since, self.watermark)

    def forgetting(self, until: int) -> Position:
        """The same without the state of windows that end at `until` or earlier."""
        return replace(self, forgotten_until=until)

    def amended(self, *, batch_id: int, attempt: int, hidden: tuple[BatchRange, ...] = ()) -> Position:
        """The position after a batch that moves neither offsets nor watermark; skipped batches do not count.

        `hidden` are the batches that it supersedes.
        """
        return replace(self, batch_id=batch_id, slices=self.slices.add(batch_id, attempt).hide(hidden))

    def backfilled(self, job: Backfill, *, batch_id: int, attempt: int) -> Position:
        """The position after a batch of a backfill, with the job as it stands then: the last one makes it count."""
        slices = self.slices.add(batch_id, attempt)
        if job.complete:
            switched = slices.hide(job.supersedes).show(job.slices)
            # Nodes were merged from what is hidden now.
            anew = self._from_now() if job.supersedes else self.merged_since
            since = {t: s.completed() if t in (job.completes or ()) else s for t, s in (self.since or {}).items()}
            return replace(
                self, batch_id=batch_id, slices=switched, backfill=None, merged_since=anew, since=since or None
            )
        return replace(self, batch_id=batch_id, slices=slices.hide([BatchRange(batch_id, batch_id + 1)]), backfill=job)
