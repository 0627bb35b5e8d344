"""Forgotten windows that a backfill can replace: those whose records it reads completely.

The ledger always tells which batches added to a window, even after their state was removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.history.coverage import Cover
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.past import Past
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import SliceSet
from tidemill.core.repair.state_retention import EARLIEST
from tidemill.core.time.panes import Panes, Window
from tidemill.core.time.spans import PaneSpan, united_spans


def whole_of(
    flow: Flow, position: Position, past: Past, covers: Sequence[Cover]
) -> Mapping[str, tuple[PaneSpan, ...]] | None:
    """Where the forgotten windows start, by table, that hold only records of `covers`; None if none is forgotten.

    Windows to which another batch added are left out. So are windows far from all these batches, unless there is
    nothing else.
    """
    until = position.forgotten_until
    if until is None:
        return None
    windowed = [sink for sink in flow.sinks if isinstance(sink, WindowedSink)]
    return {sink.table: _whole(sink, until, past, position.slices, covers) for sink in windowed}


def _whole(
    sink: WindowedSink, until: int, past: Past, slices: SliceSet, covers: Sequence[Cover]
) -> tuple[PaneSpan, ...]:
    if sink.merging:
        # Nobody can tell from the ledger which records a forgotten session had.
        return ()
    panes, table = sink.window.panes, sink.table
    end = panes.last_ending_by(until).start
    mine = [s for c in covers if table in c.panes and (s := starts_over(panes, c.panes[table])).first <= end]
    if not mine:
        return ()
    low, high = min(s.first for s in mine), min(max(s.last for s in mine), end)
    own = {c.batch_id for c in covers}
    found = past.covers(slices, lambda zone: zone.has_panes(table, low, panes.end_of(high)))
    others = [starts_over(panes, c.panes[table]) for c in found if table in c.panes and c.batch_id not in own]

    def nothing(first: int, last: int) -> bool:
        """Whether no other batch has state in `[first, last)`."""
        zone = next(past.blocks(lambda zone: zone.has_panes(table, first, last)), None)
        return zone is None and not any(s.first < last and s.last >= first for s in others)

    if nothing(EARLIEST, low):
        low = panes.first_starting_at(EARLIEST).start
    if nothing(panes.end_of(high), panes.end_of(end)):
        high = end
    return tuple(_gaps(others, low, high, panes))


def _gaps(others: Sequence[PaneSpan], low: int, high: int, panes: Panes) -> Iterator[PaneSpan]:
    """Where windows start from `low` to `high`, both included, without those in `others`."""
    for other in sorted(o for o in others if o.first <= high):
        if low < other.first:
            yield PaneSpan(low, panes.neighbour(other.first, -1))
        low = max(low, panes.neighbour(other.last, 1))
    if low <= high:
        yield PaneSpan(low, high)


def starts_over(panes: Panes, span: PaneSpan) -> PaneSpan:
    """The starts of the first and the last window that contain some of these panes."""
    return PaneSpan(panes.windows_of(span.first)[0].start, panes.windows_of(span.last)[-1].start)


def left_of(sink: WindowedSink, job: Backfill, position: Position) -> int:
    """How many windows that a job touches stay as published, because the job does not read all their records."""
    if position.forgotten_until is None:
        return 0
    panes = sink.window.panes
    end = panes.last_ending_by(position.forgotten_until).start
    starts = [starts_over(panes, span) for span in job.panes.get(sink.table, ())]
    touched = united_spans(PaneSpan(s.first, min(s.last, end)) for s in starts if s.first <= end)
    spared = [PaneSpan(max(s.first, w.first), min(s.last, w.last)) for w in _of(job, sink) for s in touched]
    return sum(panes.windows_between(s.first, s.last) for s in touched) - sum(
        panes.windows_between(s.first, s.last) for s in spared if s.first <= s.last
    )


def _of(job: Backfill, sink: WindowedSink) -> tuple[PaneSpan, ...]:
    return (job.whole or {}).get(sink.table, ())


def replaced(sink: WindowedSink, window: Window, batch: IndexedBatch) -> bool:
    """Whether the batch completed a backfill that replaced the window.

    It replaced forgotten windows only where it read all their records.
    """
    job, until = batch.job, batch.forgotten_until
    if job is None or not any(s.first < window.end and s.last >= window.start for s in job.panes.get(sink.table, ())):
        return False
    if until is None or window.end > until:
        return True
    return any(s.first <= window.start <= s.last for s in (job.whole or {}).get(sink.table, ()))
