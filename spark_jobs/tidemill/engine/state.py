"""State tables: appended slice by slice, read pane by pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from tidemill.core.flow import WindowedSink
from tidemill.core.schema import Field
from tidemill.core.slices import SliceSet
from tidemill.core.times import moment
from tidemill.engine.lanes import Lane
from tidemill.engine.places import Uris
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.protocol import Between, TableSpec

PaneRange = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What a state table holds of some panes: its columns, and at most how many rows, visible or not."""

    table: DeltaTable
    fields: tuple[Field, ...]
    rows: int


def extent(uri: str, ranges: Sequence[PaneRange]) -> Extent | None:
    """How much there is to read, from the statistics of files alone; None without a table."""
    try:
        table = DeltaTable(uri)
    except TableNotFoundError:
        return None
    files = pa.table(table.get_add_actions(flatten=True))
    rows = sum(_rows_in(files, panes) for panes in ranges)
    return Extent(table=table, fields=schema_fields(pa.schema(table.schema().to_arrow())), rows=rows)


def state_spec(uris: Uris, sink: WindowedSink) -> TableSpec | None:
    """The state of a sink as it is, or None without a table."""
    held = extent(uris.state_uri(sink), ())
    return None if held is None else uris.state(sink, held.fields)


def _rows_in(files: pa.Table, panes: PaneRange) -> int:
    low, high = panes
    lowest, highest = files["min.pane_start"].cast(pa.int64()), files["max.pane_start"].cast(pa.int64())
    inside = pc.is_valid(files["num_records"])
    if low is not None:
        inside = pc.and_(inside, pc.greater_equal(highest, low))
    if high is not None:
        inside = pc.and_(inside, pc.less(lowest, high))
    return pc.sum(files["num_records"].filter(inside)).as_py() or 0


def pane_predicates(panes: PaneRange) -> tuple[Between, ...]:
    """The rows of these panes, by partition and by statistics of files."""
    low, high = (None if edge is None else moment(edge) for edge in panes)
    return (
        Between(
            column="pane_day",
            low=None if low is None else low.date(),
            high=None if high is None else high.date() + timedelta(days=1),
        ),
        Between(column="pane_start", low=low, high=high),
    )


def read_panes(
    lane: Lane[Any], spec: TableSpec, held: Extent, ranges: Sequence[PaneRange], slices: SliceSet
) -> list[Any]:
    """The visible rows of state in these panes, one part per range."""
    table = lane.table(spec, held.table)
    return [lane.visible(table.read(where=pane_predicates(panes)), slices) for panes in ranges]
