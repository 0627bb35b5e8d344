"""The position of a pipeline after a commit: all that the next plan needs to know about the past."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.open_sessions import OpenSessions
from tidemill.core.plan.slices import BatchRange, SliceSet
from tidemill.core.time.watermarks import BEGINNING, PartitionClock


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPosition:
    """For each partition of one topic: the next offset to read, and its clock.

    `offsets` and `clocks` have the same partitions: every one that was ever read, even if the log lost it.
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
    """A table after a commit: its version, its identity, and the pipeline's last transaction in it."""

    version: int
    table_id: str
    transaction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """From `batch_id` on, the numbers of a table have their present meaning, because somebody decided so.

    If earlier batches left the table out, only its windows that start after `event_time`, in microseconds, are
    complete, and live batches publish no others.
    """

    batch_id: int
    by: str
    why: str = ""
    event_time: int | None = None

    def completed(self) -> Since:
        """This decision without `event_time`, once no window lacks records."""
        return replace(self, event_time=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The result of all commits so far. `batch_id` is the last committed batch, 0 before the first.

    `shapes` says for each table with state what it means (`WindowedSink.shape`); `tables` says how the last commit
    that wrote a table left it. `backfill` is the job that is not complete. `gone` are the partitions that the log does
    not show and that somebody declared gone. `meanings` says what the numbers of each table that the last batch
    published mean (`tidemill.core.bind.meaning`), `since` from which batch on if that changed, `matched` which topics
    patterns matched for it. `merged_since` says for each table with panes merged ahead from which event time on the
    merged panes are valid (`tidemill.core.time.pane_tree`). Windows that end at `forgotten_until` or earlier never fire
    from state again, because their state may be removed (`tidemill.core.repair.state_retention`); None if no state was.
    `open_since` says for each table of sessions from when on some may be open: from the beginning on if not named.
    `due` says for each table of firings at which batch clock, in microseconds, time alone has something to do;
    `oldest_open` when its oldest open window starts, in microseconds of event time, if it has one. Slices of batches
    before `firings_from` hold no state of tables of firings that counts; None if all do. `lagging` has the watermarks
    of tables that stay behind.
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
    open_since: Mapping[str, OpenSessions] | None = None
    due: Mapping[str, int] | None = None
    oldest_open: Mapping[str, int] | None = None
    firings_from: int | None = None
    lagging: Mapping[str, int] | None = None

    def watermark_of(self, table: str) -> int:
        """The watermark that closes the windows of a table."""
        return (self.lagging or {}).get(table, self.watermark)

    @property
    def slices_of_firings(self) -> SliceSet:
        """The visible slices that hold state of tables of firings."""
        return self.slices.since_batch(self.firings_from)

    def first_of_meaning(self, table: str) -> int:
        """The first batch whose numbers in a table have their present meaning; 0 if the meaning never changed."""
        found = (self.since or {}).get(table)
        return 0 if found is None else found.batch_id

    def whole_after(self, table: str) -> int:
        """An event time in microseconds: windows of a table that start after it have all records that batches read."""
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
        lagging: Mapping[str, int] | None = None,
    ) -> Position:
        """The position after this attempt: tables in `merged` have panes merged ahead, those in `lagging` stay behind.

        Raises:
            ValueError: the watermark would go back.
        """
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
            lagging=lagging,
        )

    def _merged_since(self, merged: Collection[str]) -> Mapping[str, int] | None:
        known = self.merged_since or {}
        return {table: known.get(table, self.watermark_of(table)) for table in merged} or None

    def _from_now(self) -> Mapping[str, int] | None:
        return self.merged_since and {table: self.watermark_of(table) for table in self.merged_since}

    def forgetting(self, until: int) -> Position:
        """This position, without the state of windows that end at `until` or earlier."""
        return replace(self, forgotten_until=until)

    def amended(self, *, batch_id: int, attempt: int, hidden: tuple[BatchRange, ...] = ()) -> Position:
        """The position after a batch that moves neither offsets nor watermark. Skipped batch ids do not count.

        `hidden` are the batches that this batch supersedes.
        """
        return replace(self, batch_id=batch_id, slices=self.slices.add(batch_id, attempt).hide(hidden))

    def backfilled(self, job: Backfill, *, batch_id: int, attempt: int) -> Position:
        """The position after a batch of a backfill; `job` is the backfill after this batch.

        The last batch hides what the job supersedes and shows the job's slices.
        """
        slices = self.slices.add(batch_id, attempt)
        if job.complete:
            switched = slices.hide(job.supersedes).show(job.slices)
            # The merged panes hold state that is hidden now.
            anew = self._from_now() if job.supersedes else self.merged_since
            since = {t: s.completed() if t in (job.completes or ()) else s for t, s in (self.since or {}).items()}
            # Without a replay, the declaration has no table of firings. If one comes back, it begins anew: what keys
            # kept in slices that are hidden now is not whole without them.
            firings = batch_id if job.replay is not None or job.supersedes else self.firings_from
            after = replace(self, batch_id=batch_id, slices=switched, backfill=None, merged_since=anew)
            return replace(after, since=since or None, open_since=None, firings_from=firings)
        return replace(self, batch_id=batch_id, slices=slices.hide([BatchRange(batch_id, batch_id + 1)]), backfill=job)
