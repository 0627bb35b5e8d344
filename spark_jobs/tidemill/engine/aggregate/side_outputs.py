"""Rejected and late rows: what goes to quarantine and to the late table."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.bind.flow import Input
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.row_rules import reasons_expression
from tidemill.core.sql.text import quoted, renamed, select, text_literal
from tidemill.core.time.window_expressions import last_window_start
from tidemill.engine.aggregate.branches import Branch
from tidemill.engine.spark.query import ROWS

_RECORD = ("_topic AS topic", "_partition AS partition", "_offset AS offset", "_timestamp AS timestamp")


def rejected_rows(source: Input) -> str:
    """A statement: the rows of one input that its contract rejects, with every reason and the raw value."""
    reasons = reasons_expression(source.contract.row_rules, error="_error", mask="_broken")
    return select([*_RECORD, renamed(reasons, "reasons"), "_raw AS value"], ROWS, where="_rejected")


def late_rows(branches: Sequence[Branch]) -> str:
    """A statement: the rows that every window of a sink refused, once per sink; empty text without windowed sinks."""
    parts = [_late_of(b, b.sink) for b in branches if isinstance(b.sink, WindowedSink)]
    return "\nUNION ALL\n".join(parts)


def _late_of(branch: Branch, sink: WindowedSink) -> str:
    panes = sink.window.panes
    start = last_window_start(panes, "_time")
    columns = ", ".join(renamed(quoted(branch.prefix + c), c) for c in branch.columns)
    values = {
        "event_time": "timestamp_micros(_time)",
        "table_name": text_literal(sink.table),
        "window_start": f"timestamp_micros({start})",
        "window_end": f"timestamp_micros({start} + {panes.size}L)",
        "row": f"to_json(struct({columns}))" if columns else "'{}'",
        "value": "_raw",
    }
    return select([*_RECORD, *(renamed(value, name) for name, value in values.items())], ROWS, where=branch.late)
