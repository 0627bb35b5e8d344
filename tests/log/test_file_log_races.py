"""Writers, trimmers and crashes that meet between two operations on the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tidemill.core.errors import CommitUnknown, LogInputError, OffsetsLost, StoreError
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.producer import Producer
from tidemill.log.records import NewRecord
from tidemill.stores.interface import Tail
from tidemill.stores.local import LocalStore

Make = Callable[..., list[NewRecord]]
Read = Callable[..., list[Record]]


class InterruptedStore(LocalStore):
    """Runs what it is given, once, before or after the next operation of a kind."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def list(self, folder: str, after: str = "") -> list[str]:
        self.before.pop("list", lambda: None)()
        found = list(super().list(folder, after))
        self.after.pop("list", lambda: None)()
        return found

    def tail(self, name: str, length: int) -> Tail:
        self.before.pop("tail", lambda: None)()
        return super().tail(name, length)

    def put_if_absent(self, name: str, data: bytes | pa.Buffer) -> bool:
        self.before.pop("put", lambda: None)()
        done = super().put_if_absent(name, data)
        self.after.pop("put", lambda: None)()
        return done

    def delete(self, name: str) -> None:
        self.before.pop("delete", lambda: None)()
        super().delete(name)


class TornStore(LocalStore):
    """Leaves some names out of its next listing, as if they had come while it was made."""

    unseen: Callable[[str], bool] | None = None

    def list(self, folder: str, after: str = "") -> list[str]:
        unseen, self.unseen = self.unseen, None
        return [name for name in super().list(folder, after) if unseen is None or not unseen(name)]


class Crash(Exception):
    """The process ends here."""


def crash() -> None:
    raise Crash


@pytest.fixture
def store(tmp_path: Path) -> InterruptedStore:
    return InterruptedStore(tmp_path / "log")


@pytest.fixture
def slow_log(store: InterruptedStore, tmp_path: Path) -> FileLog:
    """A log whose operations can be interrupted; topic t has one partition."""
    log = FileLog(tmp_path / "log", store=store)
    log.create_topic("t", 1)
    return log


def a_range(start: int, until: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", 0), start, until)


@pytest.mark.parametrize("place", ["before list", "after list", "before tail"])
def test_a_trim_past_a_reader_is_told_to_it_whenever_it_comes(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, place: str
) -> None:
    for _ in range(4):
        file_log.append("t", 0, some_records("a", "b"))
    topic, memory = file_log.topic("t"), slow_log.remembering()
    when, operation = place.split()
    getattr(store, when)[operation] = lambda: file_log.trim("t", 0, 5)
    held = memory.bounds_since("t", {0: 2})[0]
    assert held.from_offset in (2, 5)
    assert held.until_offset == 8
    with pytest.raises(OffsetsLost, match="offsets 2 to 4 are gone"):
        memory.scan(topic.topic_id, [a_range(2, 8)])
    assert memory.scan(topic.topic_id, [a_range(5, 8)]).ranges == (a_range(5, 8),)


def test_loser_of_an_end_takes_the_next_offsets(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, read: Read
) -> None:
    store.before["put"] = lambda: file_log.append("t", 0, some_records("first", "second"))
    assert slow_log.append("t", 0, some_records("third")) == a_range(2, 3)
    assert [r.value for r in read(file_log, "t")] == [b"first", b"second", b"third"]


def test_loser_with_more_records_does_not_cover_the_winner(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, read: Read
) -> None:
    store.before["put"] = lambda: file_log.append("t", 0, some_records("w"))
    assert slow_log.append("t", 0, some_records("a", "b", "c", "d")) == a_range(1, 5)
    assert len(read(file_log, "t")) == 5


def test_loser_that_asked_for_its_place_is_refused(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, read: Read
) -> None:
    store.before["put"] = lambda: file_log.append("t", 0, some_records("w"))
    with pytest.raises(LogInputError, match="already written"):
        slow_log.append("t", 0, some_records("l"), at=0)
    assert [r.value for r in read(file_log, "t")] == [b"w"]


def test_two_who_create_a_topic_agree_on_one(store: InterruptedStore, tmp_path: Path, file_log: FileLog) -> None:
    log = FileLog(tmp_path / "log", store=store)
    store.before["put"] = lambda: file_log.create_topic("t", 5)
    with pytest.raises(LogInputError, match=r"already in .* with 5 partitions"):
        log.create_topic("t", 1)
    assert log.topic("t").partitions == 5


def test_writer_that_slept_through_appends_and_a_trim_does_not_claim_success(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, read: Read
) -> None:
    def others_write_and_trim() -> None:
        for value in ("a", "b", "c"):
            file_log.append("t", 0, some_records(value))
        file_log.trim("t", 0, 2)

    store.before["put"] = others_write_and_trim
    with pytest.raises(CommitUnknown, match="trimmed to 2"):
        slow_log.append("t", 0, some_records("late", "later", "latest", "last"))
    assert [(r.offset, r.value) for r in read(file_log, "t")] == [(2, b"c")]
    assert file_log.append("t", 0, some_records("d")) == a_range(3, 4)
    assert file_log.trim("t", 0, 3) == a_range(3, 4)
    assert [r.value for r in read(file_log, "t")] == [b"d"]


def test_idempotent_producer_that_slept_lands_its_batch_once(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make, read: Read
) -> None:
    def others_write_and_trim() -> None:
        for value in ("a", "b", "c"):
            file_log.append("t", 0, some_records(value))
        file_log.trim("t", 0, 2)

    producer = Producer(slow_log, "t", producer_id="p")
    store.before["put"] = others_write_and_trim
    with pytest.raises(CommitUnknown):
        producer.append(some_records("x", "y"), sequence=0)
    assert producer.append(some_records("x", "y"), sequence=0) == (a_range(3, 5),)
    assert producer.append(some_records("x", "y"), sequence=0) == (a_range(3, 5),)
    assert [r.value for r in read(file_log, "t")] == [b"c", b"x", b"y"]
    producer.append(some_records("z"), sequence=1)
    assert producer.append(some_records("x", "y"), sequence=0) == (a_range(3, 5),)


def test_crash_after_the_start_was_set_leaves_a_consistent_log(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, read: Read, tmp_path: Path
) -> None:
    for value in (b"a", b"b", b"c", b"d"):
        slow_log.append("t", 0, [NewRecord(value=value)])
    store.before["delete"] = crash
    with pytest.raises(Crash):
        slow_log.trim("t", 0, 2)
    assert file_log.bounds("t")[0] == a_range(2, 4)
    assert [r.value for r in read(file_log, "t")] == [b"c", b"d"]
    file_log.trim("t", 0, 3)
    assert [int(path.stem) for path in sorted((tmp_path / "log").glob("t/*/0/*.parquet"))] == [3]


def test_bounds_while_the_newest_segment_is_superseded_and_trimmed(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make
) -> None:
    slow_log.append("t", 0, some_records("a"))

    def append_and_trim() -> None:
        file_log.append("t", 0, some_records("b"))
        file_log.trim("t", 0, 1)

    store.before["tail"] = append_and_trim
    assert slow_log.bounds("t")[0] == a_range(1, 2)


def test_scan_while_its_range_is_trimmed_says_that_it_is_gone(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make
) -> None:
    for value in ("a", "b", "c"):
        slow_log.append("t", 0, some_records(value))
    topic_id = slow_log.topic("t").topic_id
    store.before["tail"] = lambda: file_log.trim("t", 0, 2)
    with pytest.raises(OffsetsLost, match="offset 0 is gone"):
        slow_log.scan(topic_id, [a_range(0, 1)])


@pytest.mark.parametrize("unseen", ["00000000000000000002.start", "00000000000000000002.parquet"])
def test_listing_torn_by_an_append_and_a_trim_is_made_again(tmp_path: Path, unseen: str) -> None:
    store = TornStore(tmp_path / "log")
    log = FileLog(tmp_path / "log", store=store)
    topic = log.create_topic("t", 1)
    for value in (b"a", b"b", b"c"):
        log.append("t", 0, [NewRecord(value=value)])
    log.trim("t", 0, 2)
    store.unseen = lambda name: name == unseen
    assert log.bounds("t")[0] == a_range(2, 3)
    store.unseen = lambda name: name == unseen
    assert len(log.scan(topic.topic_id, [a_range(2, 3)]).files) == 1


def test_append_to_a_topic_deleted_meanwhile_is_never_seen_in_the_new_one(
    slow_log: FileLog, store: InterruptedStore, file_log: FileLog, some_records: Make
) -> None:
    def delete_and_create() -> None:
        file_log.delete_topic("t")
        file_log.create_topic("t", 1)

    store.before["put"] = delete_and_create
    slow_log.append("t", 0, some_records("old"))
    assert file_log.bounds("t")[0] == a_range(0, 0)


def test_segment_is_synced_before_it_has_a_name_and_its_folder_after(
    file_log: FileLog, some_records: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_log.create_topic("t", 1)
    done: list[str] = []
    sync, link = os.fsync, os.link

    def synced(descriptor: int) -> None:
        done.append(f"sync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name}")
        sync(descriptor)

    def linked(source: Path, target: Path) -> None:
        done.append(f"link {source.name}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", linked)
    topic = file_log.topic("t")
    file_log.append("t", 0, some_records("a"))
    name = done[0].removeprefix("sync ")
    assert done == [f"sync {name}", "sync t", f"sync {topic.topic_id}", f"link {name}", "sync 0"]
    done.clear()
    file_log.append("t", 0, some_records("b"))
    name = done[0].removeprefix("sync ")
    assert done == [f"sync {name}", f"link {name}", "sync 0"]


def test_failed_write_leaves_nothing(
    file_log: FileLog, some_records: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_log.create_topic("t", 1)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"No space left on device[\s\S]*fix: make room"):
            file_log.append("t", 0, some_records("a"))
    assert not list((tmp_path / "log" / ".incoming").iterdir())
    assert file_log.bounds("t")[0] == a_range(0, 0)


def test_file_system_without_hard_links_is_named(
    file_log: FileLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(StoreError, match="with hard links"):
        file_log.create_topic("t", 1)


def test_leftovers_of_killed_writers_are_removed_once_they_are_old(
    file_log: FileLog, some_records: Make, tmp_path: Path
) -> None:
    file_log.create_topic("t", 1)
    old, young = (tmp_path / "log" / ".incoming" / name for name in ("1-old", "2-young"))
    for path in (old, young):
        path.write_bytes(b"PAR1")
    long_ago = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
    os.utime(old, (long_ago, long_ago))
    file_log.append("t", 0, some_records("a"))
    assert not old.exists()
    assert young.exists()
    assert file_log.bounds("t")[0] == a_range(0, 1)


def test_writer_whose_file_was_swept_away_says_so(
    file_log: FileLog, some_records: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file_log.create_topic("t", 1)
    link = os.link

    def swept(source: Path, target: Path) -> None:
        Path(source).unlink()
        link(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", swept)
        with pytest.raises(StoreError, match="was not written"):
            file_log.append("t", 0, some_records("a"))
    assert file_log.append("t", 0, some_records("a")) == a_range(0, 1)
