"""Parts of segments: together they are all records of the ranges, each once, however files and row groups lie."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import MemoryScan, ParquetScan
from tidemill.engine.read.segments import Segments


def a_file(folder: Path, partition: int, offsets: range, group: int) -> str:
    rows = pa.table(
        {
            "topic": ["t"] * len(offsets),
            "value": pa.array([str(o).encode() for o in offsets], pa.large_binary()),
            "offset": pa.array(offsets, pa.int64()),
            "partition": pa.array([partition] * len(offsets), pa.int32()),
            "timestamp": pa.array([0] * len(offsets), pa.timestamp("ms", "UTC")),
        }
    )
    path = folder / f"{partition}-{offsets.start}.parquet"
    pq.write_table(rows, path, row_group_size=group)
    return str(path)


def of(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", partition), start, end)


def read(segments: Segments) -> list[list[tuple[int, int, bytes]]]:
    """The records of each part."""
    return [
        [tuple(row[c] for c in ("partition", "offset", "value")) for b in segments.part(n) for row in b.to_pylist()]
        for n in range(segments.parts)
    ]


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("group", [1, 4, 10, 1_000])
def test_each_record_is_in_one_part(tmp_path: Path, parts: int, group: int) -> None:
    files = [a_file(tmp_path, 0, range(23), group), a_file(tmp_path, 1, range(100, 105), group)]
    files.append(a_file(tmp_path, 0, range(23, 24), group))
    segments = Segments(files=tuple(files), ranges=(), exact=True, parts=parts)
    found = read(segments)
    wanted = [(p, o, str(o).encode()) for p, offsets in ((0, range(24)), (1, range(100, 105))) for o in offsets]
    assert sorted(row for part in found for row in part) == wanted
    for part in found:
        assert [o for p, o, _ in part if p == 0] == sorted(o for p, o, _ in part if p == 0)
    assert sum(bool(part) for part in found) > 1 or parts == 1


def test_records_outside_the_ranges_are_left_out(tmp_path: Path) -> None:
    files = (a_file(tmp_path, 0, range(10), 3), a_file(tmp_path, 1, range(10), 3))
    segments = Segments(files=files, ranges=(of(0, 2, 4), of(0, 7, 8), of(1, 9, 10)), exact=False, parts=2)
    assert sorted(row[:2] for part in read(segments) for row in part) == [(0, 2), (0, 3), (0, 7), (1, 9)]


def test_number_of_parts_follows_the_records() -> None:
    def parts(count: int) -> int:
        found = Segments.of(ParquetScan(files=("a",), ranges=(of(0, 0, count),)))
        assert found is not None
        return found.parts

    assert [parts(n) for n in (1, 20_000, 20_001, 250_000, 1_000_000, 10**9)] == [1, 1, 2, 2, 8, 64]


def test_what_workers_cannot_read_is_left_to_spark(tmp_path: Path) -> None:
    assert Segments.of(MemoryScan(records=(), ranges=())) is None
    assert Segments.of(ParquetScan(files=("s3://bucket/a",), ranges=(of(0, 0, 9),))) is None
    assert Segments.of(ParquetScan(files=(), ranges=())) is None


@pytest.mark.parametrize("damage", ["away", "cut", "a page changed"])
def test_damaged_file_is_an_error_of_the_system_or_of_arrow(tmp_path: Path, damage: str) -> None:
    path = Path(a_file(tmp_path, 0, range(5_000), 5_000))
    whole = path.read_bytes()
    if damage == "away":
        path.unlink()
    else:
        path.write_bytes(whole[:100] if damage == "cut" else whole[:60] + b"\xff" * 40 + whole[100:])
    with pytest.raises((OSError, pa.ArrowException)):
        read(Segments(files=(str(path),), ranges=(), exact=True, parts=1))
