"""What this process reads of a small batch: in threads that nobody waits for, and not more than is allowed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import LinesScan, ParquetScan, TableScan
from tidemill.engine.aggregate.native_runs import _Bound, _in_threads
from tidemill.engine.read import parts as of_parts
from tidemill.engine.read.parts import TooLarge, parts_here
from tidemill.engine.read.segments import RECORDS, Segments


def at_most(size: int) -> Callable[[int], None]:
    """What lets all parts read so many bytes."""
    return _Bound(size, threading.Event()).take


class Interrupted(Exception):
    """A signal came."""


def test_signal_waits_for_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise Interrupted

    before, goes_on, ended = signal.signal(signal.SIGALRM, interrupt), threading.Event(), list[int]()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(Interrupted):
            _in_threads(lambda number: goes_on.wait(60) and ended.append(number), range(9))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended == []
    goes_on.set()


ENDS = """
import sys

import duckdb

from tidemill.engine.aggregate.native_runs import _Bound, _in_threads


def run(number):
    if not number:
        raise ValueError
    for _ in range(100):
        duckdb.connect().sql("SELECT sum(range) FROM range(3_000_000)").fetchall()


try:
    _in_threads(run, range(8))
except ValueError:
    sys.exit(7)
"""


def test_process_ends_with_its_own_code_while_threads_compute() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (7, "")


def test_results_come_in_order_and_the_first_error_is_told() -> None:
    assert _in_threads(lambda number: number * 2, range(50)) == [*range(0, 100, 2)]
    assert _in_threads(str, []) == []
    with pytest.raises(ZeroDivisionError):
        _in_threads(lambda number: 1 // number, [2, 1, 0, 1])


def a_file(path: Path, first: int, count: int, size: int = 1) -> str:
    columns = [[0] * count, range(first, first + count), [0] * count, [b"x" * size] * count]
    rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)
    pq.write_table(rows, path, row_group_size=10, compression="none", use_dictionary=False)
    return str(path)


def offsets(parts: Any) -> list[int]:
    return [offset for part in parts for rows in part() for offset in rows["offset"].to_pylist()]


def test_row_groups_without_wanted_records_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tuple(a_file(tmp_path / f"{n}.parquet", 100 * n, 100) for n in range(2))
    wanted = OffsetRange(TopicPartition("t", 0), 95, 112)
    read: list[int] = []
    original = pq.ParquetFile.read_row_group
    monkeypatch.setattr(
        pq.ParquetFile, "read_row_group", lambda file, n, **more: read.append(n) or original(file, n, **more)
    )
    parts = parts_here(ParquetScan(files=files, ranges=(wanted,)), at_most(100_000))
    assert offsets(parts) == [*range(95, 112)]
    assert sorted(read) == [0, 1, 9]


def test_files_that_are_large_are_left_to_spark(tmp_path: Path) -> None:
    file = a_file(tmp_path / "1.parquet", 0, 100, size=1_000)
    parts = parts_here(ParquetScan(files=(file,), ranges=(OffsetRange(TopicPartition("t", 0), 0, 2),)), at_most(5_000))
    with pytest.raises(TooLarge):
        offsets(parts)


def twenty_files(folder: Path) -> LinesScan:
    """Files of one record and eight bytes each."""
    files = []
    for first in range(20):
        path = folder / f"t+0+{first:010}.json"
        path.write_bytes(b'{"n":1}\n')
        files.append(str(path))
    return LinesScan(files=tuple(files), ranges=(OffsetRange(TopicPartition("t", 0), 0, 20),))


def test_many_files_of_lines_are_a_few_parts_and_one_that_is_gone_is_an_error_of_its_part(tmp_path: Path) -> None:
    scan = twenty_files(tmp_path)
    parts = parts_here(scan, at_most(1_000))
    assert parts is not None
    assert len(parts) == 8
    assert sorted(offsets(parts)) == [*range(20)]
    Path(scan.files[3]).unlink()
    later = parts[3]()
    with pytest.raises(FileNotFoundError):
        list(later)


def test_files_are_counted_together_before_they_come_into_memory(tmp_path: Path) -> None:
    scan = twenty_files(tmp_path)
    assert len(offsets(parts_here(scan, at_most(20 * 8)))) == 20
    with pytest.raises(TooLarge):
        offsets(parts_here(scan, at_most(20 * 8 - 1)))


def test_row_groups_without_rows_are_dealt_to_nobody(tmp_path: Path) -> None:
    path, ten = tmp_path / "2.parquet", pq.read_table(a_file(tmp_path / "1.parquet", 0, 10))
    with pq.ParquetWriter(path, RECORDS) as writer:
        for rows in (ten, ten, RECORDS.empty_table()):
            writer.write_table(rows)
    segments = Segments(files=(str(path),), ranges=(), exact=True, parts=2)
    assert sum(rows.num_rows for number in range(2) for rows in segments.part(number)) == 20


@pytest.mark.parametrize(("count", "parts"), [(0, 1), (1, 1), (3, 1), (4, 2), (8, 2), (12, 4), (16, 4), (17, 6)])
def test_records_in_memory_come_in_parts_as_well(count: int, parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_PART", 4), ("_LEAST", 2), ("threads", lambda: 2)):
        monkeypatch.setattr(of_parts, name, value)
    columns = [[0] * count, list(range(count)), [0] * count, [b"x"] * count]
    rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)
    found = parts_here(TableScan(rows=rows, ranges=(), dense=True), at_most(0))
    assert found is not None
    assert len(found) == parts
    assert [n for part in found for batch in part() for n in batch["offset"].to_pylist()] == list(range(count))


@pytest.mark.parametrize(("chunk", "batches"), [(1, [6, 6]), (2, [2] * 6), (5, [5, 1, 4, 2]), (12, [6, 6])])
def test_records_that_came_a_few_at_a_time_are_joined(
    chunk: int, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_PART", 6), ("_LEAST", 2), ("threads", lambda: 2)):
        monkeypatch.setattr(of_parts, name, value)
    columns = [[0] * 12, list(range(12)), [0] * 12, [b"x"] * 12]
    rows = pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, RECORDS, strict=True)], schema=RECORDS)
    table = pa.Table.from_batches([rows.slice(start, chunk) for start in range(0, 12, chunk)])
    found = [
        batch for part in parts_here(TableScan(rows=table, ranges=(), dense=True), at_most(0)) or () for batch in part()
    ]
    assert [batch.num_rows for batch in found] == batches
    assert [n for batch in found for n in batch["offset"].to_pylist()] == list(range(12))
