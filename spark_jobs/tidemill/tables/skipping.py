"""Which files of a table may hold certain rows, from the table's log alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any
from urllib.parse import unquote

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.time.times import micros
from tidemill.tables.interface import Between, Bound
from tidemill.tables.predicates import Parts

Partition = tuple[tuple[str, Any], ...]
"""The columns of a partition, sorted by name, each with its value."""

_MILLISECOND = 1000
"""In microseconds: Spark cuts the greatest timestamp of a file to milliseconds."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one version of a table, with the partition and the statistics of each."""

    table: pa.Table
    partitions: frozenset[str]

    @staticmethod
    def of(handle: DeltaTable) -> Files:
        """The files of the version that the handle has."""
        return Files(pa.table(handle.get_add_actions(flatten=True)), frozenset(handle.metadata().partition_columns))

    def of_parts(self, parts: Parts) -> Files:
        """The files that may hold rows of one of these parts."""
        if not self.table.num_rows:
            return self
        return Files(self.table.filter(reduce(pc.or_, [self._may_hold(part) for part in parts])), self.partitions)

    @property
    def rows(self) -> int:
        """The number of their rows."""
        return self._sum("num_records")

    @property
    def bytes(self) -> int:
        """Their size, which is compressed."""
        return self._sum("size_bytes")

    def _sum(self, column: str) -> int:
        # The listing of a table without files has no such columns.
        return int(pc.sum(self.table[column]).as_py() or 0) if self.table.num_rows else 0

    def by_partition(self) -> dict[Partition, list[str]]:
        """The paths of the files inside the table, by partition."""
        found: dict[Partition, list[str]] = {}
        columns = sorted(self.partitions)
        for row in self.table.select(["path", *(f"partition.{name}" for name in columns)]).to_pylist():
            values = tuple((name, row[f"partition.{name}"]) for name in columns)
            found.setdefault(values, []).append(unquote(row["path"]))
        return found

    def _may_hold(self, part: Collection[Between]) -> pa.Array:
        inside = pc.is_valid(self.table["path"])
        for bounds in part:
            inside = pc.and_(inside, self._within(bounds))
        return inside

    def _within(self, bounds: Between) -> pa.Array:
        inside = pc.is_valid(self.table["path"])
        own = f"partition.{bounds.column}" if bounds.column in self.partitions else None
        names = [own or f"{side}.{bounds.column}" for side in ("min", "max")]
        # The files have no statistics of this column.
        if not set(names) <= set(self.table.column_names):
            return inside
        lowest, highest = (_comparable(self.table[name]) for name in names)
        cut = _MILLISECOND if own is None and isinstance(bounds.low, datetime) else 0
        if bounds.low is not None:
            inside = pc.and_(inside, pc.fill_null(pc.greater_equal(highest, _number(bounds.low) - cut), True))
        if bounds.high is not None:
            inside = pc.and_(inside, pc.fill_null(pc.less(lowest, _number(bounds.high)), True))
        return inside


def is_plain(handle: DeltaTable) -> bool:
    """Whether the rows of a table are exactly those in its files, under the same column names."""
    return bool(handle.protocol().min_reader_version == 1)


def _comparable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date(values.type) else values.cast(pa.int64())


def _number(bound: Bound) -> int:
    if isinstance(bound, datetime):
        return micros(bound)
    return bound if isinstance(bound, int) else bound.toordinal() - 719_163
