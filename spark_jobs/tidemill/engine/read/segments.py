"""Records of Parquet files on this machine, or on a disk that all machines share, read by Python.

Java would read them, too, but its rows then have to be copied to a worker: half of the time of a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.scan import ParquetScan, Scan
from tidemill.stores.interface import PREFIX
from tidemill.tables.lookup import Lookup

OfBatches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Makes rows of records, batch by batch, inside a worker."""

_FEW = 20_000
"""Up to this many records, one task is faster than two."""

_PART = 125_000
"""About so many records are one part, if they are not few."""

_MOST_PARTS = 64
_MANY = 4
"""Whole files are dealt to parts if there are so many for each."""

_UNEVEN = 1.25
"""Whole row groups are dealt to parts if the largest part is at most so many times as large as an equal one."""

_AT_ONCE = 65_536
"""The most records of one batch of rows."""

RECORDS = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("value", pa.binary()),
    ]
)
"""The columns of records that Python reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Parquet files whose records of `ranges` are read in `parts` parts; with `exact`, the files hold no others.

    `files` are their paths, or what they hold.
    """

    files: tuple[str | pa.Buffer, ...]
    ranges: tuple[OffsetRange, ...]
    exact: bool
    parts: int

    @staticmethod
    def of(scan: Scan) -> Segments | None:
        """The files of a scan; None if workers cannot read them by themselves."""
        if not isinstance(scan, ParquetScan) or any(file.startswith(PREFIX) for file in scan.files):
            return None
        count = sum(len(r) for r in scan.ranges)
        if not count:
            return None
        parts = 1 if count <= _FEW else min(max(-(-count // _PART), 2), _MOST_PARTS)
        return Segments(files=scan.files, ranges=tuple(scan.ranges), exact=scan.exact, parts=parts)

    def part(self, number: int) -> Iterator[pa.RecordBatch]:
        """The records of one part, with the columns `RECORDS`.

        Raises:
            OSError: a file is not there, or damaged.
        """
        lookup = None if self.exact else Lookup(self.ranges)
        for rows in self._of_part(number):
            inside = rows if lookup is None else _inside(rows, lookup)
            yield from inside.combine_chunks().to_batches(max_chunksize=_AT_ONCE)

    @property
    def size(self) -> int:
        """The bytes of the row groups that are read, unpacked.

        Raises:
            OSError: a file is not there, or damaged.
        """
        return sum(group.size for file in self.files for group in self._groups(file))

    def _of_part(self, number: int) -> Iterator[pa.Table]:
        """Whole files where there are many; otherwise whole row groups, and a share of each if these are few, too."""
        if len(self.files) >= _MANY * self.parts:
            groups = [group for file in self.files[number :: self.parts] for group in self._groups(file)]
            yield from (group.read(0, group.rows) for group in groups)
            return
        groups = [group for file in self.files for group in self._groups(file)]
        if (dealt := self._dealt(groups)) is not None:
            yield from (group.read(0, group.rows) for group in dealt[number])
            return
        total, begin = sum(group.rows for group in groups), 0
        first, last = total * number // self.parts, total * (number + 1) // self.parts
        for group in groups:
            low, high = (max(min(bound - begin, group.rows), 0) for bound in (first, last))
            if low < high:
                yield group.read(low, high)
            begin += group.rows

    def _groups(self, file: str | pa.Buffer) -> list[_Group]:
        """The row groups of a file that may hold records of the ranges."""
        found = pq.read_metadata(_source(file))
        groups = ((number, found.row_group(number)) for number in range(found.num_row_groups))
        wanted = () if self.exact else self.ranges
        there = ((n, g) for n, g in groups if g.num_rows and (self.exact or _touches(g, wanted)))
        return [_Group(file, number, group.num_rows, group.total_byte_size) for number, group in there]

    def _dealt(self, groups: Sequence[_Group]) -> list[list[_Group]] | None:
        """Whole row groups for each part; None if some part would be much larger than others."""
        total, begin = sum(group.rows for group in groups), 0
        parts: list[list[_Group]] = [[] for _ in range(self.parts)]
        for group in groups:
            parts[(begin + group.rows // 2) * self.parts // max(total, 1)].append(group)
            begin += group.rows
        largest = max(sum(group.rows for group in part) for part in parts)
        return parts if largest * self.parts <= total * _UNEVEN else None

    def frame(self, session: SparkSession, made: OfBatches, schema: str) -> DataFrame:
        """The rows that workers make of all records, a task for each part; `schema` is DDL text of the rows."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            numbers = (number for batch in batches for number in batch.column(0).to_pylist())
            return made(rows for number in numbers for rows in self.part(number))

        return session.range(0, self.parts, 1, self.parts).mapInArrow(run, schema)


class _Group(NamedTuple):
    """A row group of a file."""

    file: str | pa.Buffer
    number: int
    rows: int
    size: int

    def read(self, low: int, high: int) -> pa.Table:
        """Its rows from `low` to `high`, half-open."""
        with pq.ParquetFile(_source(self.file), page_checksum_verification=True) as parquet:
            rows = parquet.read_row_group(self.number, columns=RECORDS.names).select(RECORDS.names)
        return rows.slice(low, high - low).cast(RECORDS)


def _source(file: str | pa.Buffer) -> Any:
    return file if isinstance(file, str) else pa.BufferReader(file)


def _touches(group: pq.RowGroupMetaData, ranges: Sequence[OffsetRange]) -> bool:
    """Whether a row group may hold records of the ranges, by its statistics."""
    columns = (group.column(index) for index in range(group.num_columns))
    found = {column.path_in_schema: column.statistics for column in columns}
    partition, offset = found["partition"], found["offset"]
    bounds = [part.min for part in (partition, offset) if part and part.has_min_max]
    if len(bounds) < 2 or not all(isinstance(bound, int) for bound in bounds):
        return True
    return any(
        partition.min <= r.topic_partition.partition <= partition.max
        and r.from_offset <= offset.max
        and offset.min < r.until_offset
        for r in ranges
    )


def _inside(rows: pa.Table, lookup: Lookup) -> pa.Table:
    found = lookup.find(rows["partition"], rows["offset"])
    return rows if (found >= 0).all() else rows.filter(pa.array(found >= 0))
