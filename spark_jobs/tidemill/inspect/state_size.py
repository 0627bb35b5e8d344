"""How much state a pipeline keeps, read from the metadata of its tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.repair.state_retention import lacking
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.core.bind.flow import Flow
    from tidemill.core.plan.position import Position
    from tidemill.core.time.panes import Panes
    from tidemill.project.project import Project
    from tidemill.tables.handles import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSize:
    """The state of one published table: rows of all slices, visible or not, and bytes of its files.

    `oldest_open` is the start of the earliest window that still accepts records and may have state, in microseconds;
    None if there is none. Windows that start at `kept_from` or later can still be repaired from state; None means all
    windows can. Of tables of firings, which are repaired in another way, it is always None.
    """

    table: str
    rows: int
    bytes: int
    oldest_open: int | None
    kept_from: int | None = None


def state_sizes(project: Project, flow: Flow, position: Position) -> Sequence[StateSize]:
    """Return the size of the state of each table that has state, as of a position. Opens each table.

    Raises:
        EngineError: a table cannot be opened.
        TableDamaged: the Delta log of a table is damaged.
    """
    from tidemill.engine.storage.table_layout import PANE_FIELDS
    from tidemill.tables.handles import Extent

    uris, found = project.uris(flow.name), []
    for sink in flow.sinks:
        if isinstance(sink, StatefulSink):
            extent = Extent.of(uris.state(sink, PANE_FIELDS), "pane_start")
            oldest = (position.oldest_open or {}).get(sink.table)
            open_, kept = _bounds(sink, extent, position) if isinstance(sink, WindowedSink) else (oldest, None)
            sizes = {"rows": extent.rows, "bytes": extent.bytes}
            found.append(StateSize(table=sink.table, **sizes, oldest_open=open_, kept_from=kept))
    return found


def _bounds(sink: WindowedSink, extent: Extent, position: Position) -> tuple[int | None, int | None]:
    """When the earliest window starts that may be open, and the earliest one that can be repaired from state."""
    closed = _closed(position.watermark_of(sink.table), micros(sink.allowed_lateness))
    oldest = _oldest_open(extent, sink.window.panes, max(closed, lacking(sink, position)))
    if sink.merging and sink.table in (position.open_since or {}):
        oldest = _of_sessions(sink, position)
    until = position.forgotten_until
    kept = None if until is None else sink.window.panes.first_ending_after(until).start
    oldest, kept = (None if at in (BEGINNING, END) else at for at in (oldest, kept))
    return oldest, kept


def _of_sessions(sink: WindowedSink, position: Position) -> int | None:
    """The start of the earliest session that may be open; None if none is."""
    found = (position.open_since or {})[sink.table]
    if position.watermark in (BEGINNING, END):
        return None
    none_open = sink.session_panes.open_from(position.watermark_of(sink.table), found.allowed_lateness)
    return None if found.since >= none_open else found.since


def size_json(found: StateSize) -> dict[str, object]:
    """The size as JSON values."""
    moments = {"oldest_open_window": found.oldest_open, "kept_from_window": found.kept_from}
    shown = {name: None if at is None else moment(at).isoformat() for name, at in moments.items()}
    return {"table": found.table, "rows": found.rows, "bytes": found.bytes, **shown}


def _closed(watermark: int, lateness: int) -> int:
    """Windows that end at this time or earlier are closed for good."""
    return watermark if watermark in (BEGINNING, END) else watermark - lateness


def _oldest_open(extent: Extent, panes: Panes, closed: int) -> int | None:
    """The first window that ends after `closed` and may hold rows. Files tell only their first and last pane."""
    found = []
    for low, high in ((micros(low), micros(high)) for low, high in extent.spans):
        if panes.windows_of(high)[-1].end > closed:
            still_open = [w for w in panes.windows_of(low) if w.end > closed]
            found.append((still_open or panes.windows_of(closed))[0].start)
    return min(found, default=None)
