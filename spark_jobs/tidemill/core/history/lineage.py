"""Which batches have read what counts now, in their order: those that no rewind took back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.history.index import IndexedBatch
from tidemill.core.plan.amendments import Ranges, Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind

Superseded = Mapping[int, tuple[BatchRange, ...]]
"""The batches that each batch of a backfill has superseded, or will, and those whose firings a repair has again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A batch that brought records or let time pass: what it read, the watermarks before and after it, and its clock.

    It has no more of a plan than that: a history may be as long as the ledger. A repair lets no time pass; if it was
    about `only` one table, it brought no records to others. One that `replays` brought none: they count in the batch
    that had read them before. `lagging` has the watermarks of tables that stay behind.
    """

    batch_id: int
    reads: Ranges
    before: int
    after: int
    clock: datetime
    live: bool
    only: str | None
    replays: bool = False
    lagging: Mapping[str, tuple[int, ...]] | None = None

    @staticmethod
    def of(plan: BatchPlan, batch: IndexedBatch) -> Turn:
        """The turn of a live batch or a repair that committed."""
        return Turn(
            batch_id=plan.batch_id,
            reads=plan.reads,
            before=batch.before,
            after=batch.after,
            lagging=batch.lagging,
            clock=plan.clock,
            live=plan.live is not None,
            only=plan.work.only if isinstance(plan.work, Repair) else None,
            replays=isinstance(plan.work, Repair) and plan.work.replay is not None,
        )

    def watermarks_of(self, table: str) -> tuple[int, int]:
        """The watermarks before and after, as they hold for a table."""
        before, after = (self.lagging or {}).get(table, (self.before, self.after))
        return before, after

    def feeds(self, table: str) -> bool:
        """Whether the batch may bring records to a table of firings, or let time pass for it."""
        return not self.replays and self.only in {None, table}


def lineage(batches: Iterable[IndexedBatch], target: Callable[[int], int]) -> list[IndexedBatch]:
    """The live batches and repairs among committed batches, without those that rewinds took back.

    `batches` are in order; those before the first of them do not matter. `target` gives the batch that a rewind went
    back to. Backfills and folds read again what these batches have read, so they are no part of it.
    """
    before: dict[int, IndexedBatch | None] = {}
    heads: dict[int, IndexedBatch | None] = {}
    head: IndexedBatch | None = None
    for batch in batches:
        if batch.kind is Kind.REWIND:
            # It may also go forward again, to a batch that an earlier rewind took back.
            head = heads.get(target(batch.batch_id))
        elif batch.kind in {Kind.LIVE, Kind.REPAIR}:
            before[batch.batch_id], head = head, batch
        heads[batch.batch_id] = head
    found: list[IndexedBatch] = []
    while head is not None:
        found.append(head)
        head = before[head.batch_id]
    return found[::-1]


def origins_of(batch: IndexedBatch, superseded: Superseded) -> tuple[int, int]:
    """The first and the last batch that had first read what the slice of `batch` holds."""
    return origins(batch.folded or (BatchRange(batch.batch_id, batch.batch_id + 1),), superseded)


def origins(batches: Iterable[BatchRange], superseded: Superseded) -> tuple[int, int]:
    """The first and the last batch that had first read what the slices of `batches` hold.

    Raises:
        ValueError: a backfill has superseded nothing.
    """
    ends: list[int] = []
    left = list(batches)
    # A backfill may have superseded an earlier one, and so on, deeper than functions can call themselves.
    while left:
        each = left.pop()
        inside = [b for b in each.batches if b in superseded]
        left += (held for b in inside for held in superseded[b])
        ends += (b for b in (_first(each, inside), _first(each, inside, last=True)) if b is not None)
    return min(ends), max(ends)


def with_superseded(batches: Iterable[BatchRange], superseded: Superseded) -> tuple[BatchRange, ...]:
    """These batches, and all whose records they have read again, however often.

    A table may hold rows of each of them: a backfill leaves the rows of a table that the declaration lacks.
    """
    found, left = set[int](), list(batches)
    while left:
        new = [batch for batch in left.pop().batches if batch not in found]
        found.update(new)
        left += (held for batch in new for held in superseded.get(batch, ()))
    return batch_ranges(found)


def _first(batches: BatchRange, without: Iterable[int], *, last: bool = False) -> int | None:
    """The first batch of a range, or the last one, that is not among some others; None if there is none."""
    others = set(without)
    return next((b for b in batches.batches[:: -1 if last else 1] if b not in others), None)
