"""Logs that tests of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.memory import MemoryLog
from tidemill.log.reading import read_records
from tidemill.log.records import NewRecord
from tidemill.log.writable import WritableLog


@pytest.fixture
def file_log(tmp_path: Path) -> FileLog:
    return FileLog(tmp_path / "log")


@pytest.fixture(params=["memory", "file"])
def any_log(request: pytest.FixtureRequest, tmp_path: Path) -> WritableLog:
    return MemoryLog() if request.param == "memory" else FileLog(tmp_path / "log")


@pytest.fixture
def some_records() -> Callable[..., list[NewRecord]]:
    """Records whose values are the given texts."""

    def make(*values: str, key: str | None = None) -> list[NewRecord]:
        return [NewRecord(value=v.encode(), key=None if key is None else key.encode()) for v in values]

    return make


@pytest.fixture
def read() -> Callable[..., list[Record]]:
    """The records of one partition from an offset to another, by default all that it holds."""

    def read_range(
        log: WritableLog, topic: str, partition: int = 0, start: int | None = None, until: int | None = None
    ) -> list[Record]:
        held = log.bounds(topic)[partition]
        wanted = OffsetRange(
            TopicPartition(topic, partition),
            held.from_offset if start is None else start,
            held.until_offset if until is None else until,
        )
        return list(read_records(log.scan(log.topic(topic).topic_id, [wanted])))

    return read_range


@pytest.fixture
def segment_files() -> Callable[..., list[Path]]:
    """The segments of a partition of a file log, by base offset."""

    def find(root: Path, topic: str, partition: int = 0) -> list[Path]:
        return sorted(root.glob(f"{topic}/*/{partition}/*.parquet"))

    return find


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def four_segments(file_log: FileLog, some_records: Callable[..., list[NewRecord]]) -> FileLog:
    """Offsets 0 to 11 of topic t, three in each segment."""
    file_log.create_topic("t", 1)
    for base in range(0, 12, 3):
        file_log.append("t", 0, some_records(*map(str, range(base, base + 3))))
    return file_log
