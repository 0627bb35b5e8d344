"""Rows of the tiny engine: records decoded, and the columns of state and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.log.scan import Record
from tidemill.core.time.times import micros

TIMESTAMP = pa.timestamp("us", "UTC")
LONG = pa.int64()


def state_schema(sink: WindowedSink) -> pa.Schema:
    """Rows of state of a table."""
    places = [(name, pa.date32() if name == "pane_day" else TIMESTAMP) for name in sink.pane_columns]
    return pa.schema([*places, *of_key(sink), *partial_columns(sink)])


def node_schema(sink: StatefulSink) -> pa.Schema:
    """Rows of state that is merged ahead."""
    return pa.schema(
        [
            ("pane_level", pa.int32()),
            ("pane_start", TIMESTAMP),
            *of_key(sink),
            *partial_columns(sink),
            ("_touched", pa.bool_()),
        ]
    )


def row_schema(sink: StatefulSink) -> pa.Schema:
    """Rows to publish."""
    return pa.schema(
        [*((name, TIMESTAMP) for name in sink.bounds), *of_key(sink), *((name, LONG) for name in sink.aggregates)]
    )


def of_key(sink: StatefulSink) -> list[tuple[str, pa.DataType]]:
    """The columns of the key."""
    return [(key, pa.string()) for key in sink.keys]


def partial_columns(sink: StatefulSink) -> list[tuple[str, pa.DataType]]:
    """The columns of partial aggregates."""
    return [(f"{name}__{part}", LONG) for name, a in sink.aggregates.items() for part in a.triple.partial]


def partials(sink: StatefulSink, found: Sequence[int]) -> list[int]:
    """The columns of state for these counts and sums; how many a sum is of, is what the first aggregate counts."""
    parts = {"n": found[0], "high": 0}
    return [parts.get(p, v) for v, a in zip(found, sink.aggregates.values(), strict=True) for p in a.triple.partial]


def key_of(sink: StatefulSink, user: str) -> tuple[str, ...]:
    """The key of a row of this user."""
    return (user,) if sink.keys else ()


@dataclass(frozen=True)
class Row:
    """A record with what became of it: `error` for a rejected one."""

    record: Record
    time: int = 0
    user: str = ""
    amount: int = 0
    error: str = ""


def decoded(record: Record, most: int) -> Row:
    """The record as the contract of `events` has it."""
    try:
        event = json.loads(record.value or b"")
        time, user, amount = datetime.fromisoformat(event["ts"]), event["user"], event["amount"]
    except (ValueError, KeyError):
        return Row(record, error="not an event")
    if amount > most:
        return Row(record, error="amount too large")
    return Row(record, micros(time.astimezone(UTC)), user, amount)


def place(row: Row) -> dict[str, Any]:
    """Where the record is in the log."""
    found = row.record
    return {"topic": found.topic, "partition": found.partition, "offset": found.offset, "timestamp": found.timestamp}


def place_of(row: Row) -> tuple[str, int, int]:
    """Topic, partition and offset of the record."""
    return row.record.topic, row.record.partition, row.record.offset
