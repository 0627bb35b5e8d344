"""An append that ended on the way: what it says, what a second try appends, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from support.commands import Said, type_command
from tidemill.core.errors import StoreError
from tidemill.core.exit_code import ExitCode
from tidemill.core.log.offsets import OffsetRange
from tidemill.log.file import FileLog
from tidemill.log.file_partition import FilePartition
from tidemill.log.producer import Producer
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord

Append = Callable[..., Said]

DISK_FULL = StoreError("no space left on the disk", fix="make room")


@pytest.fixture
def log(tmp_path: Path) -> FileLog:
    log = FileLog(tmp_path / "log")
    log.create_topic("t", 3)
    return log


@pytest.fixture
def append(log: FileLog, tmp_path: Path) -> Append:
    """Types `tidemill log append t ...`, chunks of four lines."""

    def run(*words: object, given: bytes = b"") -> Said:
        place = ["--log", str(tmp_path / "log"), *([] if "--segment-records" in words else ["--segment-records", "4"])]
        return type_command(None, "log", "append", "t", *words, *place, given=given)

    return run


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """Ten lines, so three chunks."""
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%d\n" % n for n in range(10)))
    return path


def values(log: FileLog) -> list[int]:
    return sorted(int(record.value or b"") for record in read_topic(log, "t"))


class Failing:
    """Fails the n-th share that is written, before it is there or after."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._append, self._at, self._count, self._lands = FilePartition.append, 0, 0, 0

        def append(part: FilePartition, records: pa.Table, at: int | None, batch: object) -> OffsetRange:
            return self._write(part, records, at, batch)

        monkeypatch.setattr(FilePartition, "append", append)

    def at(self, number: int, lands: int) -> None:
        self._at, self._count, self._lands = number, 0, lands

    def _write(self, part: FilePartition, records: pa.Table, at: int | None, batch: object) -> OffsetRange:
        self._count += 1
        fails = self._count == self._at
        if fails and not self._lands:
            raise DISK_FULL
        written = self._append(part, records, at, batch)  # type: ignore[arg-type]
        if fails:
            raise DISK_FULL
        return written


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    return Failing(monkeypatch)


# Three chunks of four, four and two lines over three partitions have eight shares.
@pytest.mark.parametrize(
    "fails", [*({"number": n, "lands": True} for n in range(1, 9)), *({"number": n, "lands": False} for n in (1, 5))]
)
def test_an_append_that_fails_between_partitions_names_what_landed_and_is_completed_by_the_next(
    append: Append, log: FileLog, lines: Path, failing: Failing, fails: dict[str, int]
) -> None:
    failing.at(**fails)
    said = append(lines)
    assert said.code == ExitCode.WRONG
    assert "no space left on the disk" in said.err
    held = {n: r for n, r in log.bounds("t").items() if r}
    total = sum(map(len, held.values()))
    if total:
        named = ", ".join(map(str, held.values()))
        assert f"{total} records of this input are in the log ({named})" in said.err
        assert "fix: make room; then type the same command with --resume" in said.err
    else:
        assert "; nothing was appended" in said.err
    again = append(lines, *(["--resume"] if total else []))
    assert again.code == ExitCode.DONE
    assert values(log) == list(range(10))
    assert append(lines).out.startswith("nothing appended: all 10 records of this input were there before: t-0 [0, 4)")


def test_the_same_file_is_appended_twice_on_purpose_only(append: Append, log: FileLog, lines: Path) -> None:
    append(lines)
    copy = lines.with_name("copy")
    copy.write_bytes(lines.read_bytes())
    said = append(copy)
    assert said.out.startswith("nothing appended: all 10 records")
    assert "--again appends them once more" in said.err
    assert values(log) == list(range(10))
    assert append(lines, "--again").code == ExitCode.DONE
    assert values(log) == sorted([*range(10), *range(10)])


def test_a_file_that_changed_since_cannot_be_resumed(
    append: Append, log: FileLog, lines: Path, failing: Failing
) -> None:
    failing.at(3, lands=True)
    append(lines)
    before = values(log)
    lines.write_bytes(lines.read_bytes() + b"10\n")
    said = append(lines, "--resume")
    assert said.code == ExitCode.WRONG
    assert "has nothing of this input" in said.err
    assert "it changed since; nothing was appended" in said.err
    assert values(log) == before


def test_a_file_that_changes_while_it_is_read_is_noticed(
    append: Append, log: FileLog, lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Producer.append

    def and_grow(producer: Producer, *how: object, **more: object) -> object:
        with lines.open("ab") as file:
            file.write(b"99\n")
        return written(producer, *how, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Producer, "append", and_grow)
    said = append(lines)
    assert said.code == ExitCode.WRONG
    assert "the input changed while it was read; 4 records of this input are in the log" in said.err
    assert values(log) == [0, 1, 2, 3]


def test_options_that_deal_or_cut_otherwise_are_refused_in_a_second_try(
    append: Append, log: FileLog, lines: Path, failing: Failing
) -> None:
    failing.at(4, lands=True)
    append(lines)
    before = values(log)
    for other in (["--key-regex", "."], ["--segment-records", "3"]):
        said = append(lines, *other)
        assert said.code == ExitCode.WRONG
        assert "retry with the same records and partitioning" in said.err
        assert values(log) == before


def test_other_records_under_a_name_that_was_used_are_refused_although_they_are_as_many(
    append: Append, log: FileLog, lines: Path
) -> None:
    append(lines, "--producer-id", "p")
    for old in (b"1\n", b"9\n"):
        other = lines.with_name("other")
        other.write_bytes(lines.read_bytes().replace(old, b"7\n"))
        said = append(other, "--producer-id", "p")
        assert said.code == ExitCode.WRONG
        assert "their partitions differ" in said.err
    assert values(log) == list(range(10))


@pytest.mark.parametrize("given", [b'{"k":"a"}\n', b'{"k":"a"}\n{"k":"a"}\n'])
def test_the_same_file_with_another_key_is_refused_before_a_share_is_written(
    append: Append, log: FileLog, lines: Path, given: bytes
) -> None:
    lines.write_bytes(given)
    append(lines, "--format", "jsonl", "--key", "k")
    before = log.bounds("t")
    assert sum(map(len, before.values())) == len(given.splitlines())
    said = append(lines)
    assert (said.code, log.bounds("t")) == (ExitCode.WRONG, before)
    assert "fix: retry with the same records, options and partitioning; or append them as another input" in said.err
    assert "then type" not in said.err
    assert append(lines, "--again").code == ExitCode.DONE


def test_an_input_under_the_name_of_another_is_refused_however_long_it_is(
    append: Append, log: FileLog, lines: Path
) -> None:
    append(lines, "--producer-id", "daily")
    for other in (b"20\n", b"".join(b"%d\n" % n for n in range(8)), b"".join(b"%d\n" % n for n in range(20, 40))):
        said = append("--producer-id", "daily", given=other)
        assert said.code == ExitCode.WRONG
        assert "producer id that was never used" in said.err or "retry with the same records" in said.err
    assert values(log) == list(range(10))


def test_standard_input_that_ends_on_the_way_has_a_name_by_which_it_goes_on(
    append: Append, log: FileLog, lines: Path, failing: Failing
) -> None:
    failing.at(5, lands=True)
    said = append(given=lines.read_bytes())
    (name,) = re.findall(r"--resume --producer-id (input/\w+) and the same input", said.err)
    assert append("--resume", "--producer-id", name, given=lines.read_bytes()).code == ExitCode.DONE
    assert values(log) == list(range(10))
    assert append(given=b"3\n").out.startswith("1 record: ")
    assert values(log).count(3) == 2


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--resume"], "standard input has no name"),
        (["--again", "--resume"], "--again appends an input anew, --resume goes on"),
        (["--again", "--producer-id", "p"], "--producer-id goes on with one"),
        (["--resume", "--producer-id", "unknown"], "has nothing of this input"),
    ],
)
def test_options_that_contradict_each_other_append_nothing(
    append: Append, log: FileLog, words: list[str], what: str
) -> None:
    said = append(*words, given=b"1\n")
    assert said.code == ExitCode.WRONG
    assert what in said.err
    assert values(log) == []


def test_passing_inputs_do_not_make_the_log_forget_those_that_go_on(log: FileLog) -> None:
    quiet = Producer(log, "t", producer_id="kinesis/stream/shard-0")
    first = quiet.append([NewRecord(value=b"0")], sequence=0)
    for number in range(60):
        Producer(log, "t", producer_id=f"input/{number}").append([NewRecord(value=b"1")], sequence=0)
    assert quiet.append([NewRecord(value=b"0")], sequence=0) == first
    assert log.landed("t", 0, "input/0") is None
    assert log.landed("t", 0, "input/59") is not None


KILLED = """
import os, signal, sys
from tidemill.log.file_partition import FilePartition
written, count = FilePartition.append, 0

def append(*how):
    global count
    count += 1
    if count == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
    return written(*how)

FilePartition.append = append
from tidemill.cli.main import main
main(sys.argv[2:])
"""


def test_a_killed_append_is_completed_by_the_same_command(append: Append, log: FileLog, lines: Path) -> None:
    words = ["log", "append", "t", str(lines), "--log", str(lines.parent / "log"), "--segment-records", "4"]
    for share in ("2", "6"):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, share, *words], env={**os.environ, "TIDEMILL_LOG": ""}, check=False
        )
        assert killed.returncode == -signal.SIGKILL
    assert 0 < len(values(log)) < 10
    assert append(lines).code == ExitCode.DONE
    assert values(log) == list(range(10))
