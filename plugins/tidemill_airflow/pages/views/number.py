"""One published number: the questions that a page can ask, and the rows of one window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import InputError
from tidemill.inspect.window_map import window_map
from tidemill.inspect.window_rows import rows_of
from tidemill_airflow.pages.sight import Sight

ROWS = 200
"""How many rows of a window a page shows."""

_LOOKED_AT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """The published rows of a window, at most `ROWS` of `total`, in the order of their key."""

    sink: WindowedSink
    start: datetime
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    total: int


def windowed(flow: Flow) -> Mapping[str, WindowedSink]:
    """The tables with windows, by name."""
    return {sink.table: sink for sink in flow.sinks if isinstance(sink, WindowedSink)}


def newest_window(sight: Sight, table: str) -> datetime | None:
    """The start of the newest window that has rows, among the newest windows; None if the table has none."""
    sink = windowed(sight.flow()).get(table)
    if sink is None or sink.start is None:
        return None
    view, batches = sight.recent(_LOOKED_AT)
    cells = window_map(sight.project, sight.name, sink, view, batches, most=_LOOKED_AT)
    return next((cell.start for cell in reversed(cells) if cell.rows), None)


def window_rows(sight: Sight, table: str, start: datetime) -> WindowRows:
    """The rows that readers see of the window that starts then.

    Raises:
        InputError: the pipeline has no such table with windows.
    """
    sinks = windowed(sight.flow())
    if table not in sinks:
        raise InputError(f"{sight.name}: {table!r} has no windows", fix=f"tables with windows: {', '.join(sinks)}")
    sink = sinks[table]
    found = rows_of(sight.project.uris(sight.name), sink, start)
    columns = tuple(f.name for f in sink.contract.fields)
    if found is None:
        return WindowRows(sink=sink, start=start, columns=columns, rows=(), total=0)
    ordered = found.sort_by([(key, "ascending") for key in sink.keys]) if sink.keys else found
    shown = [name for name in dict.fromkeys((*columns, "batch_id")) if name in ordered.column_names]
    rows = ordered.select(shown).slice(0, ROWS).to_pylist()
    return WindowRows(sink=sink, start=start, columns=tuple(shown), rows=rows, total=found.num_rows)
