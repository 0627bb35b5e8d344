"""What a repair changed in published windows: each row before and after."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.flow import WindowedSink
from tidemill.core.schema import Field, Scalar
from tidemill.tables.arrow_types import arrow_schema

CORRECTION_FIELDS = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the repair"),
    Field(name="table_name", type=Scalar.STRING, required=True, description="the published table"),
    Field(name="window_start", type=Scalar.TIMESTAMP, required=True),
    Field(name="key", type=Scalar.STRING, required=True, description="the columns of the key, as JSON"),
    Field(name="before", type=Scalar.STRING, description="the row before, as JSON; null where there was none"),
    Field(name="after", type=Scalar.STRING, required=True, description="the row after, as JSON"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)


def corrections(sink: WindowedSink, before: pa.Table, after: pa.Table, *, batch_id: int, at: datetime) -> pa.Table:
    """A row for each row of `after`, with the one of `before` that has the same window and key."""
    keys = sink.row_key
    known = {tuple(map(repr, (row[k] for k in keys))): row for row in before.to_pylist()}
    rows = []
    for row in after.to_pylist():
        old = known.get(tuple(map(repr, (row[k] for k in keys))))
        rows.append(
            {
                "batch_id": batch_id,
                "table_name": sink.table,
                "window_start": row["window_start"],
                "key": _json({k: row[k] for k in sink.keys}),
                "before": None if old is None else _json({c: old[c] for c in sink.contract.columns}),
                "after": _json({c: row[c] for c in sink.contract.columns}),
                "recorded_at": at,
            }
        )
    return pa.Table.from_pylist(rows, schema=arrow_schema(CORRECTION_FIELDS))


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, default=str, ensure_ascii=False, sort_keys=True)
