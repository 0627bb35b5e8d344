"""A log that remembers for one batch what it has asked the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemill.core.errors import OffsetsLost, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.file import FileLog
from tidemill.log.reading import read_records
from tidemill.stores.local import LocalStore

Make = Callable[..., Any]
PLACE = TopicPartition("t", 0)


class Counting(LocalStore):
    """Notes what it is asked."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: list[str] = []

    def read(self, name: str) -> bytes:
        self.asked.append(f"read {Path(name).name}")
        return super().read(name)

    def list(self, folder: str) -> Any:
        self.asked.append("list")
        return super().list(folder)

    def tail(self, name: str, length: int) -> Any:
        self.asked.append(f"footer {int(Path(name).stem)}")
        return super().tail(name, length)


@pytest.fixture
def store(tmp_path: Path, some_records: Make) -> Counting:
    """A topic of three segments, with two records each."""
    found = Counting(tmp_path / "log")
    log = FileLog(tmp_path / "log", store=found)
    log.create_topic("t", 1)
    for _ in range(3):
        log.append("t", 0, some_records("a", "b"))
    found.asked.clear()
    return found


@pytest.fixture
def log(store: Counting, tmp_path: Path) -> FileLog:
    return FileLog(tmp_path / "log", store=store)


def scanned(log: FileLog, first: int, until: int) -> list[int]:
    scan = log.scan(log.topic("t").topic_id, [OffsetRange(PLACE, first, until)])
    return [record.offset for record in read_records(scan)]


def test_plan_and_scan_ask_for_each_thing_once(log: FileLog, store: Counting) -> None:
    memory = log.remembering()
    memory.topic("t")
    assert memory.bounds("t")[0].until_offset == 6
    assert scanned(memory, 2, 6) == [2, 3, 4, 5]
    assert store.asked == ["read topic.json", "list", "footer 4", "footer 2"]


def test_log_itself_remembers_nothing(log: FileLog, store: Counting, some_records: Make) -> None:
    log.remembering().bounds("t")
    store.asked.clear()
    log.bounds("t")
    log.append("t", 0, some_records("c"))
    assert log.bounds("t")[0].until_offset == 7
    assert store.asked.count("read topic.json") == 3


def test_segments_that_others_append_are_found(log: FileLog, some_records: Make) -> None:
    memory = log.remembering()
    memory.bounds("t")
    log.append("t", 0, some_records("c", "d"))
    assert scanned(memory, 4, 8) == [4, 5, 6, 7]
    assert memory.bounds("t")[0].until_offset == 8


def test_loss_since_then_is_told_and_is_not_hidden_by_the_memory(log: FileLog) -> None:
    memory = log.remembering()
    memory.bounds("t")
    log.trim("t", 0, 4)
    with pytest.raises(OffsetsLost, match="4"):
        scanned(memory, 0, 6)
    assert scanned(memory, 4, 6) == [4, 5]


def test_topic_that_comes_later_is_found(log: FileLog) -> None:
    memory = log.remembering()
    assert memory.names() == ["t"]
    with pytest.raises(UnknownTopic):
        memory.topic("u")
    log.create_topic("u", 1)
    assert memory.topic("u").name == "u"
