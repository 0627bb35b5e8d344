"""The changes of a repair in published rows of windows and firings: each row before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.json_text import json_text
from tidemill.tables.arrow_types import arrow_schema

CORRECTION_FIELDS = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the repair"),
    Field(name="table_name", type=Scalar.STRING, required=True, description="the published table"),
    Field(name="window_start", type=Scalar.TIMESTAMP, description="null where there are no windows"),
    Field(name="key", type=Scalar.STRING, required=True, description="the columns of the key, as JSON"),
    Field(name="before", type=Scalar.STRING, description="the row before, as JSON; null where there was none"),
    Field(name="after", type=Scalar.STRING, required=True, description="the row after, as JSON; `null` if removed"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

_MOMENT = pa.timestamp("us", "UTC")
_ENCODE = json.JSONEncoder(default=json_text, ensure_ascii=False, sort_keys=True).encode


def corrections(  # noqa: PLR0913  what was, what is, and who changed it
    sink: StatefulSink,
    before: pa.Table,
    after: pa.Table,
    *,
    batch_id: int,
    at: datetime,
    gone: pa.Table | None = None,
) -> pa.Table:
    """One row for each row of `after`, with the row of `before` that has the same window and key.

    Rows of `before` whose window and key are in `gone` have a row, too: after it is `null`. It works on columns: a
    repair of 100,000 scattered records changes nearly as many windows.
    """
    parts = [_changed(sink, before, after)]
    if gone is not None and before.num_rows:
        parts.append(_removed(sink, before, gone))
    rows = pa.concat_tables(parts)
    own = {
        "batch_id": pa.repeat(pa.scalar(batch_id, pa.int64()), rows.num_rows),
        "table_name": pa.repeat(sink.table, rows.num_rows),
        "recorded_at": pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), rows.num_rows),
    }
    for name, values in own.items():
        rows = rows.append_column(name, values)
    schema = arrow_schema(CORRECTION_FIELDS)
    return rows.select(schema.names).cast(schema)


def _removed(sink: StatefulSink, before: pa.Table, gone: pa.Table) -> pa.Table:
    """The rows that are removed."""
    keys = set(_keys(_texts(gone, sink.row_key), sink.row_key))
    there = pa.array([key in keys for key in _keys(_texts(before, sink.row_key), sink.row_key)], pa.bool_())
    rows = before.filter(there)
    texts = _texts(rows, sink.contract.columns)
    return pa.table(
        {
            "window_start": _starts(sink, rows),
            "key": pa.array(_objects(texts, sink.keys), pa.string()),
            "before": pa.array(_objects(texts, sink.contract.columns), pa.string()),
            "after": pa.repeat("null", rows.num_rows),
        }
    )


def _starts(sink: StatefulSink, rows: pa.Table) -> pa.Array:
    return pa.nulls(rows.num_rows, _MOMENT) if sink.start is None else rows[sink.start].cast(_MOMENT)


def _changed(sink: StatefulSink, before: pa.Table, after: pa.Table) -> pa.Table:
    """The rows that are published anew."""
    columns = sink.contract.columns
    new, there = _texts(after, columns), _texts(before, columns) if before.num_rows else {}
    known = dict(zip(_keys(there, sink.row_key), _objects(there, columns), strict=True)) if there else {}
    found = {
        "window_start": _starts(sink, after),
        "key": pa.array(_objects(new, sink.keys), pa.string()),
        "before": pa.array([known.get(key) for key in _keys(new, sink.row_key)], pa.string()),
        "after": pa.array(_objects(new, columns), pa.string()),
    }
    return pa.table(found)


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
