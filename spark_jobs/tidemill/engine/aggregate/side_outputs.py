"""Rejected and late rows: what goes to quarantine and to the late table.

A batch that is not large brings them back with its counts, in the pass that does the work (`HELD`). Otherwise a second
pass reads the blocks of the log that hold some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.flow import Input
from tidemill.core.bind.sinks import StatefulSink, named_windows
from tidemill.core.contract.row_rules import reasons_expression
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.repair.side_outputs import LATE_FIELDS, QUARANTINE_FIELDS
from tidemill.core.sql.text import quoted, renamed, select, text_literal
from tidemill.core.time.window_expressions import last_window_end, last_window_start
from tidemill.engine.aggregate.branches import Branch
from tidemill.engine.spark.query import ROWS
from tidemill.tables.arrow_types import arrow_schema

HELD = "_held"
"""The column that says whether the row has its record's value."""

_REJECTED, _LATE = "held_rejected", "held_late_"
_RECORD = {"topic": "_topic", "partition": "_partition", "offset": "_offset", "timestamp": "_timestamp"}


def _fields(fields: Sequence[Field], names: Iterable[str]) -> tuple[Field, ...]:
    by_name = {f.name: f for f in fields}
    return tuple(by_name[name] for name in names)


REJECTED_COLUMNS = _fields(QUARANTINE_FIELDS, (*_RECORD, "reasons", "value"))
LATE_COLUMNS = _fields(
    LATE_FIELDS, (*_RECORD, "event_time", "table_name", "window_start", "window_end", "row", "value")
)
"""The columns of rejected and of late rows that a pass finds; the batch adds its own."""

Values = Mapping[str, str]
"""SQL for each column of a table of side outputs."""

Rows = Sequence[Any]
"""Rows as Spark's metrics bring them: by position, in the order of the fields, times as microseconds."""


def rejected_rows(source: Input) -> str:
    """A statement: the rows of one input that its contract rejects, with every reason and the raw value."""
    return _rows(_rejected(source), "_rejected")


def late_rows(branches: Sequence[Branch]) -> str:
    """A statement: the rows that every window of a sink refused, once per sink; empty text without windowed sinks."""
    parts = [_rows(_late(b, b.sink), b.late) for b in branches if isinstance(b.sink, StatefulSink)]
    return "\nUNION ALL\n".join(parts)


def held_rows(source: Input, branches: Sequence[Branch]) -> Mapping[str, str]:
    """SQL aggregates that bring back the same rows, as far as they are `HELD`; by names of their own."""
    late = {
        f"{_LATE}{number}": _collected(_late(b, b.sink), b.late, LATE_FIELDS)
        for number, b in enumerate(branches)
        if isinstance(b.sink, StatefulSink)
    }
    return {_REJECTED: _collected(_rejected(source), "_rejected", QUARANTINE_FIELDS), **late}


def rejected_of(found: Mapping[str, Rows]) -> pa.Table:
    """The rejected rows among those that `held_rows` brought back."""
    return _table(found.get(_REJECTED, ()), REJECTED_COLUMNS)


def late_of(found: Mapping[str, Rows]) -> pa.Table:
    """The late rows among those that `held_rows` brought back."""
    rows = [row for name, part in found.items() if name.startswith(_LATE) for row in part]
    return _table(rows, LATE_COLUMNS)


def _rejected(source: Input) -> Values:
    reasons = reasons_expression(source.contract.row_rules, error="_error", mask="_broken")
    return {**_RECORD, "reasons": reasons, "value": "_raw"}


def _late(branch: Branch, sink: StatefulSink) -> Values:
    panes = named_windows(sink)
    start, end = last_window_start(panes, "_time"), last_window_end(panes, "_time")
    columns = ", ".join(renamed(quoted(branch.prefix + c), c) for c in branch.columns)
    return {
        **_RECORD,
        "event_time": "timestamp_micros(_time)",
        "table_name": text_literal(sink.table),
        "window_start": f"timestamp_micros({start})",
        "window_end": f"timestamp_micros({end})",
        "row": f"to_json(struct({columns}))" if columns else "'{}'",
        "value": "_raw",
    }


def _rows(values: Values, where: str) -> str:
    return select([renamed(value, name) for name, value in values.items()], ROWS, where=where)


def _collected(values: Values, where: str, fields: Sequence[Field]) -> str:
    parts = (
        f"unix_micros({values[f.name]})" if f.type is Scalar.TIMESTAMP else values[f.name]
        for f in _fields(fields, values)
    )
    return f"collect_list(CASE WHEN ({where}) AND {HELD} THEN struct({', '.join(parts)}) END)"


def _table(rows: Rows, fields: Sequence[Field]) -> pa.Table:
    schema = arrow_schema(fields)
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)
