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
        self.is_bucket = False

    def read(self, name: str) -> bytes:
        self.asked.append(f"read {Path(name).name}")
        return super().read(name)

    def list(self, folder: str, after: str = "") -> Any:
        self.asked.append(f"list after {int(after)}" if after else "list")
        names = super().list(folder, after)
        return [name for name in names if name > after] if self.is_bucket else names

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


def test_a_reader_who_goes_on_where_a_segment_begins_lists_no_name_before_it(log: FileLog, store: Counting) -> None:
    memory = log.remembering()
    assert memory.bounds_since("t", {0: 4})[0] == OffsetRange(PLACE, 4, 6)
    assert scanned(memory, 4, 6) == [4, 5]
    assert store.asked == ["read topic.json", "list after 4", "footer 4"]
    # A repair reads what is before it.
    assert scanned(memory, 2, 4) == [2, 3]
    assert store.asked[3:] == ["list", "footer 2"]


@pytest.mark.parametrize("is_bucket", [False, True])
@pytest.mark.parametrize("at", [3, 6, 7])
def test_a_reader_who_goes_on_elsewhere_lists_all(log: FileLog, store: Counting, at: int, is_bucket: bool) -> None:
    store.is_bucket = is_bucket
    assert log.bounds_since("t", {0: at})[0] == OffsetRange(PLACE, 0, 6)
    assert store.asked == ["read topic.json", f"list after {at}", *["list"] * is_bucket, "footer 4"]


def test_what_others_do_after_such_a_listing_is_noticed(log: FileLog, some_records: Make) -> None:
    memory = log.remembering()
    assert memory.bounds_since("t", {0: 2})[0] == OffsetRange(PLACE, 2, 6)
    log.append("t", 0, some_records("c", "d"))
    assert scanned(memory, 2, 8) == [2, 3, 4, 5, 6, 7]
    log.trim("t", 0, 4)
    with pytest.raises(OffsetsLost, match="4"):
        scanned(log.remembering(), 2, 8)
    assert log.bounds_since("t", {0: 2})[0] == OffsetRange(PLACE, 4, 8)


def test_a_reader_at_the_begin_or_of_another_partition_lists_all_at_once(log: FileLog, store: Counting) -> None:
    assert log.bounds_since("t", {0: 0}) == log.bounds_since("t", {1: 4}) == log.bounds("t")
    assert store.asked.count("list") == 3


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
