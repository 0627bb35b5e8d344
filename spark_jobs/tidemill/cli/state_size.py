"""How much state a pipeline keeps, from the metadata of its tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemill.core.flow import WindowedSink
from tidemill.core.times import micros, moment
from tidemill.core.watermarks import BEGINNING, END

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.core.flow import Flow
    from tidemill.core.windows import Panes
    from tidemill.project import Project
    from tidemill.tables.handles import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSize:
    """The state of one published table: rows of slices, visible or not, and bytes of its files.

    `oldest_open` is where the earliest window starts that still takes records and may have state, in microseconds; None
    when there is none.
    """

    table: str
    rows: int
    bytes: int
    oldest_open: int | None


def state_sizes(project: Project, flow: Flow, watermark: int) -> Sequence[StateSize]:
    """The state of each windowed table, as of a watermark. Costs the opening of its table.

    Raises:
        EngineError: a table cannot be opened.
        TableDamaged: its log is damaged.
    """
    from tidemill.engine.places import PANE_FIELDS
    from tidemill.tables.handles import Extent

    uris, found = project.uris(flow.name), []
    for sink in flow.sinks:
        if isinstance(sink, WindowedSink):
            extent = Extent.of(uris.state(sink, PANE_FIELDS), "pane_start")
            closed = _closed(watermark, micros(sink.allowed_lateness))
            oldest = _oldest_open(extent, sink.window.panes, closed)
            found.append(StateSize(table=sink.table, rows=extent.rows, bytes=extent.bytes, oldest_open=oldest))
    return found


def size_json(found: StateSize) -> dict[str, object]:
    """The same as JSON values."""
    oldest = None if found.oldest_open is None else moment(found.oldest_open).isoformat()
    return {"table": found.table, "rows": found.rows, "bytes": found.bytes, "oldest_open_window": oldest}


def _closed(watermark: int, lateness: int) -> int:
    """Windows that end here or earlier are closed for good."""
    return watermark if watermark in (BEGINNING, END) else watermark - lateness


def _oldest_open(extent: Extent, panes: Panes, closed: int) -> int | None:
    """The first window that ends after `closed` and may hold rows: files only say where their first and last lie."""
    found = []
    for low, high in ((micros(low), micros(high)) for low, high in extent.spans):
        if panes.windows_of(high)[-1].end > closed:
            still_open = [w for w in panes.windows_of(low) if w.end > closed]
            found.append((still_open or panes.windows_of(closed))[0].start)
    return min(found, default=None)
