"""What was published before numbers came to mean what they mean now: the declaration of now says nothing about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.bind.flow import Sink, WindowedSink
from tidemill.core.history.coverage import Cover, batches_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange
from tidemill.core.sql.text import quoted
from tidemill.core.time.spans import PaneSpan, united_spans
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING
from tidemill.core.time.windows import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The `batches` whose rows meant something else, and in `windows` where the windows start that may hold some.

    A slice that was made of several batches is of then when one of them is. Windows that start at `whole_after` or
    before it may lack what was read before there was the table; None where there always was.
    """

    batches: tuple[BatchRange, ...]
    windows: tuple[Window, ...]
    whole_after: int | None = None

    @staticmethod
    def of(sink: Sink, position: Position, covers: Sequence[Cover]) -> Earlier:
        """What was made of a table before its numbers came to mean what they mean."""
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
        """The batches that are not among them."""
        old = {batch for found in self.batches for batch in found.batches}
        return [cover for cover in covers if cover.batch_id not in old]

    def without_windows(self, rows: DataFrame, start: str, others: Sequence[Window] = ()) -> DataFrame:
        """The rows of windows that hold nothing of then, and start in none of the `others`; `start` is the column."""
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
    """Where windows start that may lack a record which later windows have, as half-open stretches.

    A record that comes when some of its windows are closed counts in the others. Which ones those were, the ledger
    tells by batch, not by record: these are all windows that were closed then and reach into what the batch brought.
    """
    panes, lateness = sink.window.panes, micros(sink.allowed_lateness)
    spans = []
    for batch in batches:
        span, closed = batch.panes.get(sink.table), batch.before - lateness - panes.size
        if batch.refused_windows and span is not None and batch.before != BEGINNING:
            first = max(panes.windows_of(span.first)[0].start, closed - panes.size + 1)
            spans += [PaneSpan(first, closed)] if first <= closed else []
    return tuple(Window(span.first, span.last + 1) for span in united_spans(spans))


def _windows(sink: Sink, spans: Sequence[PaneSpan]) -> tuple[Window, ...]:
    """Where the windows start that contain some of these panes, as half-open stretches."""
    if not isinstance(sink, WindowedSink):
        return ()
    panes = sink.window.panes
    starts = united_spans(
        PaneSpan(panes.windows_of(span.first)[0].start, panes.windows_of(span.last)[-1].start) for span in spans
    )
    return tuple(Window(span.first, span.last + 1) for span in starts)
