"""Which batches published a window, why, and what computed them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import assert_never

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.history.index import IndexedBatch
from tidemill.core.identity.semantics import version_of
from tidemill.core.plan.position import Since
from tidemill.core.plan.work import Kind
from tidemill.core.repair.whole_windows import replaced
from tidemill.core.time.panes import Window
from tidemill.core.time.times import micros
from tidemill.core.time.timing import Timing, timing_of_live
from tidemill.engine.aggregate.firing import Firing


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A batch that published the window: why, and the version of the table after it.

    `attempt` committed it; `semantics` is the version of what it computed (`tidemill.core.identity.semantics`).
    """

    batch_id: int
    attempt: int
    semantics: int
    timing: str
    at: datetime
    version: int | None
    rules_held: int
    rules_broken: int

    @staticmethod
    def of(batch: IndexedBatch, table: str, timing: str) -> Publication:
        """What this batch published in a table."""
        held, broken = (batch.rules or {}).get(table, (0, 0))
        return Publication(
            batch_id=batch.batch_id,
            attempt=batch.attempt,
            semantics=version_of(batch.semantics),
            timing=timing,
            at=batch.at,
            version=batch.tables.get(table),
            rules_held=held,
            rules_broken=broken,
        )


def publications_of(
    sink: WindowedSink, window: Window, touched: Collection[int], batches: Sequence[IndexedBatch], since: Since | None
) -> tuple[Publication, ...]:
    """The batches that published a window, in their order. `touched` have a pane that may lie in it."""
    found = []
    for batch in batches:
        timing = timing_of(sink, window, batch, touched=batch.batch_id in touched)
        if timing is None or _was_left_out(sink, window, batch, since):
            continue
        found.append(Publication.of(batch, sink.table, timing))
    return tuple(found)


def _was_left_out(sink: WindowedSink, window: Window, batch: IndexedBatch, since: Since | None) -> bool:
    """Whether a batch would have published the window, but did not because batches left the table out."""
    if since is None or since.event_time is None or batch.kind not in (Kind.LIVE, Kind.REPAIR):
        return False
    if batch.batch_id >= since.batch_id:
        return window.start <= since.event_time
    return sink.table not in batch.tables


def timing_of(sink: WindowedSink, window: Window, batch: IndexedBatch, *, touched: bool) -> str | None:
    """Why a batch published the window; None if it did not. `touched`: it has a pane that may lie in the window.

    A live batch fires windows as `Firing` says: windows that are closed for good do not fire, even if they share a
    pane.
    """
    before, after = batch.watermarks_of(sink.table)
    lateness = micros(sink.allowed_lateness) if batch.kind is Kind.LIVE and sink.closes else None
    firing = Firing(trigger=sink.trigger, before=before, after=after, allowed_lateness=lateness)
    match batch.kind:
        case Kind.REWIND:
            return "REWIND" if sink.table in batch.tables else None
        case Kind.BACKFILL:
            closed = window.end <= sink.trigger.touched_until(after)
            found = replaced(sink, window, batch) or ((touched or sink.merging) and _admits(window, batch))
            return Timing.BACKFILL if closed and found else None
        case Kind.FOLD:
            return None
        case Kind.REPAIR:
            gone = batch.forgotten_until is not None and window.end <= batch.forgotten_until
            return Timing.REPAIR if touched and not gone and window.end <= sink.trigger.touched_until(after) else None
        case Kind.LIVE | Kind.SWITCH:
            if sink.trigger.fires_on_close and before < window.end <= after:
                return Timing.ON_TIME
            again = touched and firing.refused_until < window.end <= firing.again_until
            return timing_of_live(window.end, before, after) if again else None
        case _:
            assert_never(batch.kind)


def _admits(window: Window, batch: IndexedBatch) -> bool:
    """Whether the last batch of a backfill published a window because it brought the first records of it."""
    gone = batch.forgotten_until is not None and window.end <= batch.forgotten_until
    return batch.job is not None and batch.job.complete and not gone
