"""How many late records came for which window of which table, in which batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.plan.amendments import SideOutput

if TYPE_CHECKING:
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.log.side_tables import SideTables

_WINDOW = ("table_name", "window_start", "window_end")
_ADDED = {"first_batch": "min", "last_batch": "max", "records": "sum", "watermark": "max"}
_TIME = pa.timestamp("us", "UTC")
_COUNTED = pa.schema(
    [
        ("first_batch", pa.int64()),
        ("last_batch", pa.int64()),
        ("table_name", pa.string()),
        ("window_start", _TIME),
        ("window_end", _TIME),
        ("watermark", _TIME),
        ("records", pa.int64()),
    ]
)


def late_windows(tables: SideTables, selection: Selection) -> pa.Table:
    """Count the selected late records by table and window, in this order.

    A record counts once for each table that refused it. `watermark` is the greatest that one of the records was late
    for; null if none has one. Records of a table without windows of time count together, with null bounds. Large late
    tables are read in parts, without the values of the records.
    """
    parts = tables.parts(SideOutput.LATE, selection, (*_WINDOW, "watermark"))
    counted = _added(pa.concat_tables([_COUNTED.empty_table(), *(_added(_each(rows)) for rows in parts)]))
    return counted.sort_by([(name, "ascending") for name in _WINDOW])


def _each(rows: pa.Table) -> pa.Table:
    """Each row of the late table as a count of one."""
    ones = pa.array(np.ones(rows.num_rows, dtype=np.int64))
    batches = {"first_batch": rows["batch_id"], "last_batch": rows["batch_id"]}
    return pa.table({**batches, **{name: rows[name] for name in (*_WINDOW, "watermark")}, "records": ones})


def _added(counts: pa.Table) -> pa.Table:
    """Add the counts of each window."""
    added = counts.group_by(list(_WINDOW)).aggregate(list(_ADDED.items()))
    named = added.rename_columns({f"{name}_{how}": name for name, how in _ADDED.items()})
    return named.select(_COUNTED.names).cast(_COUNTED)
