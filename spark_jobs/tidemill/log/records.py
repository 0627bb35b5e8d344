"""Records before they have an offset, and the schemas of inputs and segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.core.time.times import FIRST, LAST, micros

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

INPUT_SCHEMA = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)
"""The columns that a producer accepts. Only the column `value` is required; every cell may be null."""

SEGMENT_SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)
"""The columns of a segment: those of Spark's Kafka source, with times in microseconds, UTC."""

CREATE_TIME, APPEND_TIME = 0, 1
"""`timestampType` as in Kafka: the producer gave the time, or the log's clock did at the append."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record that has no offset yet.

    `key` decides the partition if a producer partitions by key. `value` is None for a tombstone. `timestamp` has a time
    zone; None means the moment of the append.
    """

    value: bytes | None
    key: bytes | None = None
    timestamp: datetime | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    def __post_init__(self) -> None:
        if self.timestamp is not None and self.timestamp.tzinfo is None:
            raise LogInputError(
                f"the timestamp {self.timestamp} of a record has no time zone", fix="give an aware datetime"
            )
        if self.timestamp is not None and not FIRST <= micros(self.timestamp) <= LAST:
            raise LogInputError(f"the timestamp {self.timestamp} of a record is not in the years 1 to 9999 of UTC")


def as_table(records: pa.Table | Iterable[NewRecord]) -> pa.Table:
    """Convert the records to a table with `INPUT_SCHEMA`, in the same order.

    Raises:
        LogInputError: a given table lacks `value`, or has a column that records do not have, or a column of a wrong
            type.
    """
    if isinstance(records, pa.Table):
        return _conformed(records)
    rows = list(records)
    columns = {
        "timestamp": [r.timestamp for r in rows],
        "key": [r.key for r in rows],
        "value": [r.value for r in rows],
        "headers": [[{"key": k, "value": v} for k, v in r.headers] or None for r in rows],
    }
    return pa.table(columns, schema=INPUT_SCHEMA)


def as_new_records(table: pa.Table) -> list[NewRecord]:
    """Convert the rows of a table with `INPUT_SCHEMA` to `NewRecord` values."""
    return [
        NewRecord(
            value=row["value"],
            key=row["key"],
            timestamp=row["timestamp"],
            headers=tuple((h["key"], h["value"]) for h in row["headers"] or ()),
        )
        for row in table.to_pylist()
    ]


def in_years(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Move times outside the years 1 to 9999 to the nearest time inside them: Python knows no others."""
    first, last = (pa.scalar(edge, pa.int64()).cast(times.type) for edge in (FIRST, LAST))
    return pc.if_else(pc.less(times, first), first, pc.if_else(pc.greater(times, last), last, times))


def utc_now() -> datetime:
    """The time of the system's clock, in UTC."""
    return datetime.now(UTC)


def _conformed(table: pa.Table) -> pa.Table:
    strange = sorted(set(table.column_names) - set(INPUT_SCHEMA.names))
    if strange or "value" not in table.column_names:
        raise LogInputError(
            f"records have the columns {', '.join(INPUT_SCHEMA.names)}; found {', '.join(table.column_names)}",
            fix="name the column of the payload `value` and drop the others",
        )
    columns = [
        table[field.name] if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in INPUT_SCHEMA
    ]
    try:
        rows = pa.table(columns, names=INPUT_SCHEMA.names).cast(INPUT_SCHEMA)
    except pa.ArrowException as error:
        raise LogInputError(f"a column of the records has another type than {INPUT_SCHEMA}: {error}") from error
    if not in_years(rows["timestamp"]).equals(rows["timestamp"]):
        raise LogInputError("a timestamp of the records is not in the years 1 to 9999 of UTC")
    return rows
