"""Real processes that share a file log, and some that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.producer import Producer, RoundRobin
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord

Start = Callable[[str, str], "subprocess.Popen[str]"]
Read = Callable[..., list[Record]]

SCRIPT = Path(__file__).with_name("writer_process.py")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts writers of the log in this test's folder; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start_writer(kind: str, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(SCRIPT), kind, str(tmp_path / "log"), name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start_writer
    for process in started:
        process.kill()
        process.communicate()


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the writer ended with {process.wait()}"
    return line.strip()


def kill(process: subprocess.Popen[str]) -> list[str]:
    """SIGKILL it, and return what it had still printed."""
    process.kill()
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return rest.splitlines()


def test_two_processes_at_one_partition_own_disjoint_dense_offsets(
    file_log: FileLog, tmp_path: Path, start: Start
) -> None:
    file_log.create_topic("t", 1)
    writers = [start("append", name) for name in ("a", "b")]
    assert [next_line(writer) for writer in writers] == ["ready", "ready"]
    (tmp_path / "go").touch()
    lines = [line.split() for writer in writers for line in writer.communicate(timeout=120)[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0, 0]
    placed = sorted((int(begin), int(until), name) for name, begin, until in lines)
    assert len(placed) == 80
    assert [begin for begin, _, _ in placed] == [0, *(until for _, until, _ in placed[:-1])]
    expected = [name.encode() for begin, until, name in placed for _ in range(begin, until)]
    assert [record.value for record in read_topic(file_log, "t")] == expected


def test_killed_writer_leaves_nothing_half_visible(file_log: FileLog, start: Start) -> None:
    file_log.create_topic("t", 2)
    writer = start("produce", "p")
    acknowledged = [int(next_line(writer)) for _ in range(5)]
    acknowledged += [int(line) for line in kill(writer)]
    found = {n: [int(r.value or b"") for r in read_topic(file_log, "t", partition=n)] for n in (0, 1)}
    for number, values in found.items():
        assert len(values) % 50 == 0
        assert values == list(range(number, 2 * len(values), 2))
    assert min(map(len, found.values())) >= 50 * len(acknowledged)


def test_producer_after_two_killed_ones_completes_their_batches(file_log: FileLog, start: Start) -> None:
    file_log.create_topic("t", 2)
    for _ in range(2):
        writer = start("produce", "p")
        last = max([int(next_line(writer)) for _ in range(5)] + [int(line) for line in kill(writer)])
    producer = Producer(file_log, "t", partitioning=RoundRobin(), producer_id="p")
    newest = producer.next_sequence() - 1
    assert newest >= last
    for sequence in range(newest + 1):
        producer.append([NewRecord(value=b"%d" % (sequence * 100 + n)) for n in range(100)], sequence=sequence)
    values = [int(record.value or b"") for record in read_topic(file_log, "t")]
    assert sorted(values) == list(range(100 * (newest + 1)))


def test_writer_killed_before_its_link_leaves_only_what_nobody_reads(
    file_log: FileLog, tmp_path: Path, start: Start, read: Read
) -> None:
    file_log.create_topic("t", 1)
    writer = start("stall", "never")
    assert next_line(writer) == "stalled"
    kill(writer)
    (incoming,) = (tmp_path / "log" / ".incoming").iterdir()
    assert read(file_log, "t") == []
    os.utime(incoming, (0, 0))
    file_log.append("t", 0, [NewRecord(value=b"next")])
    assert [(record.offset, record.value) for record in read(file_log, "t")] == [(0, b"next")]
    assert not incoming.exists()


def test_of_processes_that_create_a_topic_at_once_one_succeeds(file_log: FileLog, start: Start) -> None:
    writers = [start("create", partitions) for partitions in ("1", "2", "3")]
    made = [line.split() for writer in writers for line in writer.communicate(timeout=120)[0].splitlines()]
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert sorted(name for name, _ in made) == [f"t{number}" for number in range(10)]
    assert dict(made) == {topic.name: topic.topic_id for topic in file_log.topics()}
