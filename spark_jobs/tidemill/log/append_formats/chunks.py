"""Collects the rows of an input in chunks. Each chunk is appended as one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.log.records import INPUT_SCHEMA

MAX_ROW_BYTES = 64 * 1024 * 1024
"""A longer line or row is refused and not read into memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSize:
    """When a chunk is full: at `records` rows, or earlier when its values have `bytes`.

    Chunks depend only on the content of an input, so a repeated append makes the same chunks.
    """

    records: int = 200_000
    bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Records with `INPUT_SCHEMA`. `consumed` counts the bytes read from the input so far."""

    records: pa.Table
    consumed: int


@dataclass(slots=True, kw_only=True)
class Rows:
    """The columns of rows not yet in a chunk. Times are microseconds since 1970; None means the time of the append."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    consumed: int = 0

    def add(self, value: bytes, key: bytes | None, time: int | None) -> None:
        """Append one row."""
        self.values.append(value)
        self.keys.append(key)
        self.times.append(time)

    def extend(self, other: Rows) -> None:
        """Append the rows of `other`."""
        self.values += other.values
        self.keys += other.keys
        self.times += other.times
        self.consumed = other.consumed

    def take(self, count: int) -> Chunk:
        """Remove the first `count` rows and return them."""
        table = pa.table(
            [
                pa.array(self.times[:count], pa.int64()).cast(INPUT_SCHEMA.field("timestamp").type),
                pa.array(self.keys[:count], pa.binary()),
                pa.array(self.values[:count], pa.binary()),
                pa.nulls(min(count, len(self.values)), INPUT_SCHEMA.field("headers").type),
            ],
            schema=INPUT_SCHEMA,
        )
        del self.values[:count], self.keys[:count], self.times[:count]
        return Chunk(records=table, consumed=self.consumed)


def gather(rows: Iterable[Rows], size: ChunkSize) -> Iterator[Chunk]:
    """Yield all rows, in order, in chunks of at most `size.records`. No chunk is empty."""
    pending = Rows()
    weight = 0
    for some in rows:
        pending.extend(some)
        weight += sum(map(len, some.values))
        while len(pending.values) >= size.records:
            yield pending.take(size.records)
            weight = sum(map(len, pending.values))
        if weight >= size.bytes:
            yield pending.take(size.records)
            weight = 0
    if pending.values:
        yield pending.take(size.records)


def bad_row(name: str, line: int, what: str, fix: str = "") -> LogInputError:
    """The error for a row that cannot become a record. Lines count from 1."""
    return LogInputError(f"{name}, line {line}: {what}", fix=fix)


def too_long(name: str, line: int) -> LogInputError:
    """The error for a line longer than `MAX_ROW_BYTES`."""
    return bad_row(
        name,
        line,
        f"longer than {MAX_ROW_BYTES // 1024**2} MiB without an end",
        fix="check that the file is of the format given",
    )
