"""How many late records came for which window of which table, in which batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import moment
from tidemill.inspect.missed_records import missed_records

if TYPE_CHECKING:
    from tidemill.repair.job import AmendmentJob

_WINDOW = ("table_name", "window_start", "window_end")
_ADDED = {"first_batch": "min", "last_batch": "max", "records": "sum", "watermark": "max", "partly_late": "sum"}
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
        ("partly_late", pa.int64()),
    ]
)


def late_windows(amendment: AmendmentJob, selection: Selection) -> pa.Table:
    """Count the selected late records by table and window, in this order.

    A record counts once for each table that refused it. `watermark` is the greatest that one of the records was late
    for; null if none has one. Records of a table without windows of time count together, with null bounds. Large late
    tables are read in parts, without the values of the records.

    `partly_late` counts records that a window missed while later ones took them: no table has them, and commits know
    only how many there were, so it is null if the selection asks for more than batches and a table.
    """
    parts = amendment.side_tables.parts(SideOutput.LATE, selection, (*_WINDOW, "watermark"))
    known = replace(selection, batches=(), table=None) == Selection()
    partly = _missed(amendment, selection) if known else _COUNTED.empty_table()
    counted = _added(pa.concat_tables([partly, *(_added(_each(rows)) for rows in parts)]))
    if not known:
        counted = counted.set_column(counted.num_columns - 1, "partly_late", pa.nulls(counted.num_rows, pa.int64()))
    return counted.sort_by([(name, "ascending") for name in _WINDOW])


def _missed(amendment: AmendmentJob, selection: Selection) -> pa.Table:
    """What the commits of batches that still count tell of windows that missed records which others took."""
    rows, wanted = list[dict[str, Any]](), selection.table
    for sink in (s for s in amendment.flow.sinks if isinstance(s, StatefulSink) and wanted in {None, s.table}):
        found = missed_records(amendment.ledger, sink, selection.batches)
        for start, (records, first, last) in found.items():
            bounds = {"window_start": moment(start), "window_end": moment(sink.panes.end_of(start))}
            batches = {"first_batch": first, "last_batch": last}
            rows.append({**batches, "table_name": sink.table, **bounds, "records": 0, "partly_late": records})
    return pa.Table.from_pylist(rows, _COUNTED)


def _each(rows: pa.Table) -> pa.Table:
    """Each row of the late table as a count of one."""
    ones, none = pa.array(np.ones(rows.num_rows, np.int64)), pa.array(np.zeros(rows.num_rows, np.int64))
    batches = {"first_batch": rows["batch_id"], "last_batch": rows["batch_id"]}
    window = {name: rows[name] for name in (*_WINDOW, "watermark")}
    return pa.table({**batches, **window, "records": ones, "partly_late": none})


def _added(counts: pa.Table) -> pa.Table:
    """Add the counts of each window."""
    added = counts.group_by(list(_WINDOW)).aggregate(list(_ADDED.items()))
    named = added.rename_columns({f"{name}_{how}": name for name, how in _ADDED.items()})
    return named.select(_COUNTED.names).cast(_COUNTED)
