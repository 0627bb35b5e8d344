"""The changes of a repair in published windows: each row before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.schema import Field, Scalar
from tidemill.tables.arrow_types import arrow_schema

CORRECTION_FIELDS = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the repair"),
    Field(name="table_name", type=Scalar.STRING, required=True, description="the published table"),
    Field(name="window_start", type=Scalar.TIMESTAMP, description="null where there are no windows"),
    Field(name="key", type=Scalar.STRING, required=True, description="the columns of the key, as JSON"),
    Field(name="before", type=Scalar.STRING, description="the row before, as JSON; null where there was none"),
    Field(name="after", type=Scalar.STRING, required=True, description="the row after, as JSON"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

_ENCODE = json.JSONEncoder(default=str, ensure_ascii=False, sort_keys=True).encode


def corrections(sink: WindowedSink, before: pa.Table, after: pa.Table, *, batch_id: int, at: datetime) -> pa.Table:
    """One row for each row of `after`, with the row of `before` that has the same window and key.

    It works on columns: a repair of 100,000 scattered records changes nearly as many windows.
    """
    columns, rows = sink.contract.columns, after.num_rows
    new, there = _texts(after, columns), _texts(before, columns) if before.num_rows else {}
    known = dict(zip(_keys(there, sink.row_key), _objects(there, columns), strict=True)) if there else {}
    found = {
        "batch_id": pa.repeat(pa.scalar(batch_id, pa.int64()), rows),
        "table_name": pa.repeat(sink.table, rows),
        "window_start": pa.nulls(rows) if sink.start is None else after[sink.start],
        "key": pa.array(_objects(new, sink.keys), pa.string()),
        "before": pa.array([known.get(key) for key in _keys(new, sink.row_key)], pa.string()),
        "after": pa.array(_objects(new, columns), pa.string()),
        "recorded_at": pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), rows),
    }
    return pa.table(found).cast(arrow_schema(CORRECTION_FIELDS))


def _texts(rows: pa.Table, columns: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The values of each column as JSON."""
    return {name: _json(rows[name].combine_chunks()) for name in columns}


def _json(column: pa.Array) -> Sequence[str]:
    # Windows and keys have few different values. Arrow has no dictionaries of lists, and treats 0.0 and -0.0 as equal.
    if pa.types.is_nested(column.type) or pa.types.is_floating(column.type):
        return [_ENCODE(value) for value in column.to_pylist()]
    known = column.dictionary_encode()
    texts = pa.array([_ENCODE(value) for value in known.dictionary.to_pylist()], pa.string())
    found: Sequence[str] = pc.fill_null(texts.take(known.indices), "null").to_pylist()
    return found


def _keys(texts: Mapping[str, Sequence[str]], columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    if not columns:
        # There is one row for all records.
        return iter([()] * len(next(iter(texts.values()))))
    return zip(*(texts[name] for name in columns), strict=True)


def _objects(texts: Mapping[str, Sequence[str]], columns: Sequence[str]) -> list[str]:
    """These columns of each row as a JSON object, with sorted names."""
    names = sorted(columns)
    if not names:
        return ["{}"] * len(next(iter(texts.values())))
    pattern = "{" + ", ".join(_ENCODE(name).replace("%", "%%") + ": %s" for name in names) + "}"
    return [pattern % row for row in zip(*(texts[name] for name in names), strict=True)]
