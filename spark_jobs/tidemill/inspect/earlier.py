"""Parts of a table from before its numbers changed their meaning: the present declaration cannot check them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.bind.sinks import Sink, WindowedSink
from tidemill.core.history.coverage import Cover, batches_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange
from tidemill.core.sql.text import quoted
from tidemill.core.time.panes import Window
from tidemill.core.time.spans import PaneSpan, united_spans
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The `batches` whose rows had another meaning, and the ranges of starts of `windows` that may hold such rows.

    A slice folded from several batches counts as earlier if one of them does. Windows that start at or before
    `whole_after` may lack records that were read before the table existed; None if it always existed.
    """

    batches: tuple[BatchRange, ...]
    windows: tuple[Window, ...]
    whole_after: int | None = None

    @staticmethod
    def of(sink: Sink, position: Position, covers: Sequence[Cover]) -> Earlier:
        """Find the parts of a table from before its numbers got their present meaning."""
        first = position.first_of_meaning(sink.table)
        old = [cover for cover in covers if cover.batches[0].from_batch < first]
        spans = [c.panes[sink.table] for c in old if sink.table in c.panes]
        since = (position.since or {}).get(sink.table)
        return Earlier(
            batches=batches_of(old),
            windows=_windows(sink, spans),
            whole_after=None if since is None else since.event_time,
        )

    def others(self, covers: Sequence[Cover]) -> Sequence[Cover]:
        """The covers that are not among these batches."""
        old = {batch for found in self.batches for batch in found.batches}
        return [cover for cover in covers if cover.batch_id not in old]

    def without_windows(self, rows: DataFrame, start: str, others: Sequence[Window] = ()) -> DataFrame:
        """The rows of windows that hold nothing earlier and start in none of `others`. `start` names the column."""
        starts = f"unix_micros({quoted(start)})"
        stretches = [f"({starts} >= {w.start}L AND {starts} < {w.end}L)" for w in (*self.windows, *others)]
        stretches += [] if self.whole_after is None else [f"{starts} <= {self.whole_after}L"]
        inside = " OR ".join(stretches)
        return rows.where(f"NOT ({inside})") if inside else rows

    def without_rows(self, rows: DataFrame) -> DataFrame:
        """The rows that later batches published."""
        inside = " OR ".join(f"(batch_id >= {b.from_batch} AND batch_id < {b.until_batch})" for b in self.batches)
        return rows.where(f"NOT ({inside})") if inside else rows


def parted(sink: WindowedSink, batches: Iterable[IndexedBatch]) -> tuple[Window, ...]:
    """Find windows that may lack a record which later windows have. Returns half-open ranges of window starts.

    A record that arrives when some of its windows are closed counts in the others. The ledger knows this per batch, not
    per record, so the result is all windows that were closed then and overlap with what the batch read.
    """
    panes, lateness = sink.window.panes, micros(sink.allowed_lateness)
    spans = []
    for batch in batches:
        span = batch.panes.get(sink.table)
        before, _ = batch.watermarks_of(sink.table)
        if batch.refused_windows and span is not None and before != BEGINNING:
            closed = panes.last_ending_by(before - lateness).start
            first = max(panes.windows_of(span.first)[0].start, closed - panes.longest + 1)
            spans += [PaneSpan(first, closed)] if first <= closed else []
    return tuple(Window(span.first, span.last + 1) for span in united_spans(spans))


def _windows(sink: Sink, spans: Sequence[PaneSpan]) -> tuple[Window, ...]:
    """The starts of the windows that contain some of these panes, as half-open ranges."""
    if not isinstance(sink, WindowedSink):
        return ()
    panes = sink.window.panes
    starts = united_spans(
        PaneSpan(panes.windows_of(span.first)[0].start, panes.windows_of(span.last)[-1].start) for span in spans
    )
    return tuple(Window(span.first, span.last + 1) for span in starts)
