"""Short descriptions of committed batches, so that nobody must read the whole ledger.

An `IndexedBatch` is computed from the events of one batch and from nothing else (a fold also from the batches that it
folded): the ledger can always give the index again. A `Zone` bounds what neighbouring batches hold, so that a search
must look at only a few batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.contract.verdict import Verdict
from tidemill.core.identity.semantics import version_of
from tidemill.core.log.offsets import OffsetRange, TopicPartition, merge_ranges
from tidemill.core.log.packed_offsets import Packed, packed, unpacked
from tidemill.core.plan.amendments import Fold, Ranges, Reason, Repair, Rewind, Switch
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import BackfillStep, Kind, Live, Reading
from tidemill.core.protocol.events import Audited, Committed, Event, Planned
from tidemill.core.time.missed import Missed
from tidemill.core.time.spans import PaneSpan


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedJob:
    """What a batch did for a backfill: `panes` are those that the backfill's last batch replaced, by published table.

    Of forgotten windows, it replaced those that start in `whole`.
    """

    since: int
    complete: bool
    panes: Mapping[str, tuple[PaneSpan, ...]]
    whole: Mapping[str, tuple[PaneSpan, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedBatch:
    """A committed batch; event `sequence` of the ledger is its commit.

    `reads` are the offsets in its slice, including those of the batches that it `folded`. `began` are the partitions
    that the pipeline had not read before, with their first offset. `before` and `after` are watermarks (microseconds).
    `rules` says for each published table how many rules passed and how many failed. `asked` says who asked for an
    amendment, and why. Windows that end at `forgotten_until` or earlier were forgotten. `refused_windows` and
    `missed` are as in `Committed`, with None for 0. `semantics` is that of the plan, with None for the first. `lagging`
    has the watermarks before and after for tables that stay behind.
    """

    sequence: int
    batch_id: int
    attempt: int
    kind: Kind
    started: datetime
    at: datetime
    before: int
    after: int
    reads: Packed
    began: Mapping[str, Mapping[int, int]] | None = None
    folded: tuple[BatchRange, ...] | None = None
    panes: Mapping[str, PaneSpan]
    tables: Mapping[str, int]
    rules: Mapping[str, tuple[int, ...]] | None = None
    incomplete: Mapping[str, PaneSpan] | None = None
    skipped: tuple[OffsetRange, ...] | None = None
    job: IndexedJob | None = None
    asked: Reason | None = None
    forgotten_until: int | None = None
    refused_windows: int | None = None
    missed: Mapping[str, tuple[Missed, ...]] | None = None
    semantics: int | None = None
    lagging: Mapping[str, tuple[int, ...]] | None = None

    def watermarks_of(self, table: str) -> tuple[int, int]:
        """The watermarks before and after, as they hold for a table."""
        before, after = (self.lagging or {}).get(table, (self.before, self.after))
        return before, after

    @property
    def ranges(self) -> Ranges:
        """The offsets in its slice."""
        return unpacked(self.reads)

    @property
    def batches(self) -> tuple[BatchRange, ...]:
        """The batches that read the offsets in its slice: this one, and those that it folded."""
        return batch_ranges([self.batch_id, *(self.folded or ())])


Known = Callable[[tuple[BatchRange, ...]], Iterable[IndexedBatch]]
"""A function that gives the indexed batches with these ids."""


def indexed(events: Iterable[tuple[int, Event]], known: Known) -> Iterator[IndexedBatch]:
    """The batches that commit in these events, each event with its sequence; `known` gives batches that came before."""
    plan, verdict, made = None, None, dict[int, IndexedBatch]()
    for sequence, event in events:
        match event:
            case Planned():
                plan, verdict = event.plan, None
            case Audited():
                verdict = event.verdict
            case Committed() if plan is not None and plan.batch_id == event.batch_id:
                made[event.batch_id] = batch = _batch(sequence, plan, event, verdict, _folded(plan, made, known))
                yield batch
            case _:
                pass


def _folded(plan: BatchPlan, made: Mapping[int, IndexedBatch], known: Known) -> list[IndexedBatch]:
    if not isinstance(plan.work, Fold):
        return []
    ids = [b for r in plan.work.batches for b in r.batches]
    before = batch_ranges(b for b in ids if b not in made)
    found = {b.batch_id: b for b in known(before)} if before else {}
    return [made.get(b) or found[b] for b in ids]


def _batch(
    sequence: int, plan: BatchPlan, commit: Committed, verdict: Verdict | None, folded: Sequence[IndexedBatch]
) -> IndexedBatch:
    read = _read(plan)
    began = {
        name: {r.topic_partition.partition: r.from_offset for r in topic.ranges if r.topic_partition not in read}
        for name, topic in plan.topics.items()
    }
    return IndexedBatch(
        sequence=sequence,
        batch_id=commit.batch_id,
        attempt=commit.attempt,
        kind=plan.kind,
        started=commit.started,
        at=commit.at,
        before=plan.position.watermark,
        after=commit.position.watermark,
        reads=packed(_united(b.ranges for b in folded) if folded else plan.reads),
        began={name: places for name, places in began.items() if places} or None,
        folded=batch_ranges(r for b in folded for r in b.batches) or None,
        # The commit may name fewer panes: the folded state may have lost rows in the meantime.
        panes=plan.work.panes if isinstance(plan.work, Fold) else commit.panes,
        tables=commit.tables,
        rules=_rules(verdict),
        incomplete=commit.incomplete,
        skipped=None if plan.live is None else plan.live.skipped,
        job=_job(plan),
        asked=asked_of(plan),
        forgotten_until=plan.position.forgotten_until,
        refused_windows=commit.refused_windows or None,
        missed=commit.missed,
        semantics=None if version_of(plan.semantics) == 1 else plan.semantics,
        lagging=_lagging(plan.position, commit.position),
    )


def _lagging(before: Position, after: Position) -> Mapping[str, tuple[int, ...]] | None:
    tables = sorted({*(before.lagging or {}), *(after.lagging or {})})
    return {table: (before.watermark_of(table), after.watermark_of(table)) for table in tables} or None


def _read(plan: BatchPlan) -> Collection[TopicPartition]:
    return {TopicPartition(topic, p) for topic, at in plan.position.topics.items() for p in at.offsets}


def _united(parts: Iterable[Ranges]) -> Ranges:
    found: dict[str, list[OffsetRange]] = {}
    for part in parts:
        for topic, items in part.items():
            found.setdefault(topic, []).extend(items)
    return {topic: merge_ranges(items) for topic, items in found.items()}


def _rules(verdict: Verdict | None) -> Mapping[str, tuple[int, ...]] | None:
    passed: dict[str, list[bool]] = {}
    for result in verdict.results if verdict is not None else ():
        passed.setdefault(result.table, []).append(result.passed)
    return {table: (sum(each), len(each) - sum(each)) for table, each in passed.items()} or None


def _job(plan: BatchPlan) -> IndexedJob | None:
    job = plan.job
    if job is None:
        return None
    panes, whole = (job.panes, job.whole) if job.complete else ({}, None)
    return IndexedJob(since=job.since, complete=job.complete, panes=panes, whole=whole)


def asked_of(plan: BatchPlan) -> Reason | None:
    """Who asked for an amendment, and why; None for batches that nobody asked for."""
    match plan.work:
        case BackfillStep(job=job):
            return Reason(by=job.by, why=job.why)
        case Repair(reason=reason) | Rewind(reason=reason) | Switch(reason=reason):
            return reason
        case Live() | Fold() | Reading():
            return None
