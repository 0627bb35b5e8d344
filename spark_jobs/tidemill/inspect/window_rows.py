"""The rows that a published table has of one window."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.errors import InputError
from tidemill.core.time.times import show_moment
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.interface import Between

_SHOWN = 10
"""How many keys an error names."""


def matching(rows: pa.Table, key: Mapping[str, str]) -> pa.Table:
    """The rows with this key. Values are compared as text; null equals empty text."""
    for column, text in key.items():
        values = pa.array(["" if v is None else str(v) for v in rows[column].to_pylist()], pa.string())
        rows = rows.filter(pc.equal(values, text))
    return rows


def row_of(uris: Uris, sink: StatefulSink, start: datetime | None, key: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The published row of a window and key; None if there is none."""
    rows = matching(published, key).to_pylist() if (published := rows_of(uris, sink, start)) is not None else []
    return rows[0] if rows else None


def nothing_counted(uris: Uris, sink: StatefulSink, start: datetime | None, key: Mapping[str, str]) -> InputError:
    """The error for a window and key that no record belongs to. It names the keys that the window has."""
    rows = rows_of(uris, sink, start)
    found = [] if rows is None else rows.select(sink.keys).to_pylist()
    known = sorted({_text(each) for each in found})
    close = difflib.get_close_matches(_text(key), known, n=1)
    listed = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else "")
    window = [] if start is None else [f"in the window of {show_moment(start)}"]
    said = " and ".join([*window, *([f"{'' if window else 'under '}the key {_text(key)}"] if key else [])])
    return InputError(
        f"{sink.table}: no record counts {said}; published rows{' of this window' if window else ''}: "
        f"{listed or 'none'}",
        fix=f"did you mean {close[0]}?" if close else "name a window and a key of a published row",
    )


def rows_of(uris: Uris, sink: StatefulSink, start: datetime | None) -> pa.Table | None:
    """The published rows of a window, or of a table without windows; None if the table does not exist yet."""
    spec = uris.published_table(sink)
    if newest(spec) is None:
        return None
    if sink.start is None or start is None:
        return DeltaRsTable(spec).read(where=())
    # No window starts in the last microsecond that a datetime can hold: its end would be later.
    if start >= datetime.max.replace(tzinfo=UTC):
        return None
    one = Between(column=sink.start, low=start, high=start + timedelta(microseconds=1))
    return DeltaRsTable(spec).read(where=(one,))


def _text(key: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={'' if value is None else value}" for name, value in key.items())
