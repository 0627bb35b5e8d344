"""The newest windows of a published table: open, ended or closed, with what was late and what was repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.inspect.missed_records import missed_records
from tidemill.inspect.recent_batches import BatchFacts

if TYPE_CHECKING:
    from tidemill.core.protocol.view import View
    from tidemill.project.project import Project

_AMENDING = (Kind.REPAIR, Kind.BACKFILL)
_LOOKED_AT = 4
"""Of so many repairs the slices are read, to see which windows they touched."""


class WindowState(StrEnum):
    """OPEN: its end is ahead of the watermark. ENDED: published, and it still takes late records. CLOSED: refuses."""

    OPEN = "open"
    ENDED = "ended"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCell:
    """A window. `rows` are published; `refused` counts records that came too late for it in the newest batches.

    Of records that were late for all of their windows, these are the ones whose last window it is.

    `repaired` are the newest repairs and backfills among these batches that had records of it.
    """

    start: datetime
    end: datetime
    state: WindowState
    rows: int
    refused: int
    repaired: tuple[int, ...]


def window_map(  # noqa: PLR0913  whose table, where it stands, and how far back
    project: Project, pipeline: str, sink: WindowedSink, view: View, batches: Sequence[BatchFacts], *, most: int
) -> tuple[WindowCell, ...]:
    """The `most` newest windows of a table, oldest first; none before the first event. Sessions are not shown.

    It reads only the newest rows.
    """
    if sink.start is None or sink.merging:
        return ()
    newest = max((b.newest_event for b in batches if b.newest_event is not None), default=None)
    if newest is None:
        return ()
    panes, watermark = sink.window.panes, view.position.watermark_of(sink.table)
    last = panes.number_of(newest)
    windows = [panes.window(number) for number in range(last - most + 1, last + 1)]
    starts = [window.start for window in windows]
    rows = _rows(project, pipeline, sink, starts)
    refused = _refused(project, pipeline, sink, batches)
    repaired = _repaired(project, pipeline, sink, batches, starts)
    told = batch_ranges(b.batch_id for b in batches if b.missed)
    missed = missed_records(project.ledger(pipeline), sink, told) if told else {}
    cells = []
    for start, end in ((window.start, window.end) for window in windows):
        cells.append(
            WindowCell(
                start=moment(start),
                end=moment(end),
                state=state_of(end, watermark, micros(sink.allowed_lateness)),
                rows=rows.get(start, 0),
                refused=refused.get(start, 0) + missed.get(start, (0,))[0],
                repaired=tuple(sorted(repaired.get(start, ()))),
            )
        )
    first = next((i for i, c in enumerate(cells) if c.rows or c.refused or c.state is WindowState.OPEN), 0)
    return tuple(cells[first:])


def state_of(end: int, watermark: int, lateness: int) -> WindowState:
    """The state of a window that ends at `end`; all in microseconds."""
    if watermark == END:
        return WindowState.CLOSED
    if watermark == BEGINNING or end > watermark:
        return WindowState.OPEN
    return WindowState.ENDED if end + lateness > watermark else WindowState.CLOSED


def _repaired(
    project: Project, pipeline: str, sink: WindowedSink, batches: Sequence[BatchFacts], starts: Sequence[int]
) -> Mapping[int, set[int]]:
    """The batches that repaired each of these windows, by its start."""
    from tidemill.engine.storage.state_table import State, pane_predicates
    from tidemill.tables.deltars import DeltaRsTable
    from tidemill.tables.interface import Between

    panes, found = sink.window.panes, dict[int, set[int]]()
    amending = [b for b in batches if b.kind in _AMENDING and sink.table in b.panes][:_LOOKED_AT]
    state = State.of(project.uris(pipeline), sink) if amending else None
    if state is None:
        return found
    table = DeltaRsTable(state.spec, opened=state.handle)
    within = pane_predicates((starts[0], panes.end_of(starts[-1])))
    for batch in amending:
        one = Between(column="batch_id", low=batch.batch_id, high=batch.batch_id + 1)
        touched = table.read(where=(one, *within), columns=("pane_start",))["pane_start"].unique().to_pylist()
        for window in (w for pane in touched for w in panes.windows_of(micros(pane))):
            found.setdefault(window.start, set()).add(batch.batch_id)
    return found


def _rows(project: Project, pipeline: str, sink: WindowedSink, starts: Sequence[int]) -> Mapping[int, int]:
    """How many published rows each of these windows has."""
    from tidemill.tables.deltars import DeltaRsTable
    from tidemill.tables.handles import newest
    from tidemill.tables.interface import Between

    spec = project.uris(pipeline).published_table(sink)
    if newest(spec) is None:
        return {}
    [column, *_] = sink.bounds
    within = Between(column=column, low=moment(starts[0]), high=moment(starts[-1] + 1))
    found = DeltaRsTable(spec).read(where=(within,), columns=(column,))
    return Counter(micros(start) for start in found[column].to_pylist())


def _refused(project: Project, pipeline: str, sink: WindowedSink, batches: Sequence[BatchFacts]) -> Mapping[int, int]:
    """How many records the last window of each was closed for, in these batches."""
    with_late = [b.batch_id for b in batches if b.account is not None and b.account.late]
    if not with_late:
        return {}
    within = Selection(batches=(BatchRange(min(with_late), max(with_late) + 1),), table=sink.table)
    chosen = project.side_tables(pipeline).choose(SideOutput.LATE, within, columns=("window_start",))
    return {} if chosen is None else Counter(micros(start) for start in chosen.rows["window_start"].to_pylist())
