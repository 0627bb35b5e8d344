"""Records of a log in parts that this process reads by itself, without Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
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

_PART, _LEAST = 250_000, 10_000
"""The most and the fewest records of a part, about: each part costs some milliseconds, and each thread wants one."""

_MOST_THREADS = 4
_MOST_PARTS = 8
_BATCH_ROWS = 50_000


Take = Callable[[int], None]
"""Counts bytes that are about to come into memory, over all parts; raises `TooLarge` if they are too many."""


class TooLarge(Exception):
    """The records of a batch, or their files, are larger than this process may read."""


def parts_here(scan: Scan, take: Take) -> Sequence[Part] | None:
    """The records of a scan, in a few parts that threads can read; None if only Spark reads them.

    `take` is asked before whole files come into memory. Reading raises OSError or SegmentDamaged if a file is not
    there, or damaged, and what `take` raises.
    """
    match scan:
        case ParquetScan():
            segments = Segments.of(scan)
            if segments is not None:
                segments = replace(segments, parts=_parts_of(sum(map(len, scan.ranges))))
                return [partial(_segments, segments, number, take) for number in range(segments.parts)]
            return [partial(_fetched, scan, files, take) for files in _dealt(scan.files)]
        case MemoryScan() | TableScan():
            rows = rows_of(scan)
            step = -(-rows.num_rows // _parts_of(rows.num_rows)) or 1
            return [partial(_held, rows.slice(start, step)) for start in range(0, max(rows.num_rows, 1), step)]
        case LinesScan(firsts=firsts):
            return [partial(_lines, scan, firsts, files, take) for files in _dealt(scan.files)]
        case KafkaScan():
            return None
        case _:
            assert_never(scan)


def threads() -> int:
    """How many parts this process reads at once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_THREADS, cores)


def _parts_of(count: int) -> int:
    """In how many parts so many records are read: as many for each thread."""
    return max(min(threads() * -(-count // (threads() * _PART)), count // _LEAST), 1)


def _dealt(files: Sequence[str]) -> list[Sequence[str]]:
    return [files[number::_MOST_PARTS] for number in range(min(len(files), _MOST_PARTS))]


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


def _held(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows in batches; each costs as much as thousands of rows, and these may have come a few at a time."""
    small = rows.num_rows < _LEAST * rows.column(0).num_chunks
    yield from (rows.combine_chunks() if small else rows).to_batches(max_chunksize=_BATCH_ROWS)


def _segments(segments: Segments, number: int, take: Take) -> Iterator[pa.RecordBatch]:
    if not number:
        take(segments.size)
    yield from segments.part(number)


def _fetched(scan: ParquetScan, files: Sequence[str], take: Take) -> Iterator[pa.RecordBatch]:
    """The records of files in a store, each of which is read at once."""
    for file in files:
        content = _content(file, scan.storage, take)
        yield from Segments(files=(content,), ranges=tuple(scan.ranges), exact=scan.exact, parts=1).part(0)


def _lines(
    scan: LinesScan, firsts: Sequence[tuple[int, int]], files: Sequence[str], take: Take
) -> Iterator[pa.RecordBatch]:
    for file in files:
        yield from of_lines(file, _content(file, scan.storage, take).to_pybytes(), scan.ranges, firsts)


def _content(file: str, storage: Mapping[str, str], take: Take) -> pa.Buffer:
    found = opened(file, storage)
    with pa.OSFile(found) if isinstance(found, str) else found as source:
        take(source.size())
        return source.read_buffer()
