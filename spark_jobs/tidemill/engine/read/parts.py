"""Records of a log in parts that this process reads by itself, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.log.connect_files import records_of
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.scan import KafkaScan, LinesScan, MemoryScan, ParquetScan, Scan, TableScan
from tidemill.core.time.times import UNKNOWN
from tidemill.engine.read.segments import RECORDS, Segments
from tidemill.stores.opened import opened

Part = Callable[[], Iterator[pa.RecordBatch]]
"""Reads some records, with the columns `RECORDS`."""

_BATCH_ROWS = 50_000


def parts_here(scan: Scan) -> Sequence[Part] | None:
    """The records of a scan, in parts that threads can read; None if only Spark reads them.

    Reading raises OSError or SegmentDamaged if a file is not there, or damaged.
    """
    match scan:
        case ParquetScan():
            segments = Segments.of(scan)
            if segments is not None:
                return [partial(segments.part, number) for number in range(segments.parts)]
            return [partial(_fetched, scan, file) for file in scan.files]
        case MemoryScan() | TableScan():
            return [partial(_held, scan)]
        case LinesScan():
            return [partial(_lines, scan, file) for file in scan.files]
        case KafkaScan():
            return None
        case _:
            assert_never(scan)


def rows_of(scan: MemoryScan | TableScan) -> pa.Table:
    """The records of a scan that holds them, with the columns `RECORDS`."""
    if isinstance(scan, TableScan):
        return scan.rows.select(RECORDS.names).cast(RECORDS)
    columns = [[getattr(r, name) for r in scan.records] for name in RECORDS.names]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)


def of_lines(
    path: str, content: bytes, ranges: Sequence[OffsetRange], firsts: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    """The records of a file of lines that lie in the ranges; `firsts` are those of its `LinesScan`."""
    found = list(zip(*records_of(path, content, ranges, firsts), strict=True))
    for start in range(0, len(found[0]) if found else 0, _BATCH_ROWS):
        partitions, offsets, values = (column[start : start + _BATCH_ROWS] for column in found)
        yield pa.record_batch([partitions, offsets, [UNKNOWN] * len(values), values], schema=RECORDS)


def _held(scan: MemoryScan | TableScan) -> Iterator[pa.RecordBatch]:
    yield from rows_of(scan).to_batches(max_chunksize=_BATCH_ROWS)


def _fetched(scan: ParquetScan, file: str) -> Iterator[pa.RecordBatch]:
    """The records of a file in a store, which is read at once."""
    source = opened(file, scan.storage)
    found = source if isinstance(source, str) else source.read_buffer()
    return Segments(files=(found,), ranges=tuple(scan.ranges), exact=scan.exact, parts=1).part(0)


def _lines(scan: LinesScan, file: str) -> Iterator[pa.RecordBatch]:
    source = opened(file, scan.storage)
    content = Path(source).read_bytes() if isinstance(source, str) else source.read()
    return of_lines(file, content, scan.ranges, scan.firsts)
