"""Rejected and late rows: what goes to quarantine and to the late table."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.flow import Input, WindowedSink
from tidemill.core.row_rules import reasons_expression
from tidemill.core.schema import Array, Field, Scalar
from tidemill.core.sql import quoted, renamed, select, text_literal
from tidemill.engine.branches import Branch
from tidemill.engine.query import ROWS

_WHERE = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the batch that read the record"),
    Field(name="topic", type=Scalar.STRING, required=True),
    Field(name="partition", type=Scalar.INTEGER, required=True),
    Field(name="offset", type=Scalar.LONG, required=True),
    Field(name="timestamp", type=Scalar.TIMESTAMP, description="when the log took the record"),
)

QUARANTINE_FIELDS = (
    *_WHERE,
    Field(name="reasons", type=Array(Scalar.STRING), required=True, description="every reason for the rejection"),
    Field(name="value", type=Scalar.BINARY, description="the record's value, byte for byte; null for a tombstone"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

LATE_FIELDS = (
    *_WHERE,
    Field(name="event_time", type=Scalar.TIMESTAMP, required=True),
    Field(name="table_name", type=Scalar.STRING, required=True, description="the published table that refused the row"),
    Field(name="window_start", type=Scalar.TIMESTAMP, required=True, description="of the row's last window"),
    Field(name="window_end", type=Scalar.TIMESTAMP, required=True),
    Field(name="watermark", type=Scalar.TIMESTAMP, description="the watermark it was late for; null: input had ended"),
    Field(name="row", type=Scalar.STRING, required=True, description="the columns that the table uses, as JSON"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

_RECORD = ("_topic AS topic", "_partition AS partition", "_offset AS offset", "_timestamp AS timestamp")


def rejected_rows(source: Input) -> str:
    """A statement: the rows of one input that its contract refused, with every reason and the raw value."""
    reasons = reasons_expression(source.contract.row_rules, error="_error", mask="_broken")
    return select([*_RECORD, renamed(reasons, "reasons"), "_raw AS value"], ROWS, where="_rejected")


def late_rows(branches: Sequence[Branch]) -> str:
    """A statement: the rows that every window of a sink refused, once per sink; empty when no sink has windows."""
    parts = [_late_of(b, b.sink) for b in branches if isinstance(b.sink, WindowedSink)]
    return "\nUNION ALL\n".join(parts)


def _late_of(branch: Branch, sink: WindowedSink) -> str:
    panes = sink.window.panes
    start = f"_time - pmod(_time - {panes.offset}L, {panes.slide}L)"
    columns = ", ".join(renamed(quoted(branch.prefix + c), c) for c in branch.columns)
    values = {
        "event_time": "timestamp_micros(_time)",
        "table_name": text_literal(sink.table),
        "window_start": f"timestamp_micros({start})",
        "window_end": f"timestamp_micros({start} + {panes.size}L)",
        "row": f"to_json(struct({columns}))" if columns else "'{}'",
    }
    return select([*_RECORD, *(renamed(value, name) for name, value in values.items())], ROWS, where=branch.late)
