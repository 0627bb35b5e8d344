"""What is special about a log of plain files: its layout, its damages, and writers that meet."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemill.core.errors import (
    ConfigError,
    LogError,
    LogInputError,
    StoreError,
    TidemillError,
    UnknownTopic,
)
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.records import SEGMENT_SCHEMA, NewRecord

Make = Callable[..., list[NewRecord]]
Read = Callable[..., list[Record]]
Files = Callable[..., list[Path]]


def test_topic_file_describes_the_topic(root: Path) -> None:
    log = FileLog(root, clock=lambda: datetime(2024, 1, 2, tzinfo=UTC), new_id=lambda: "abc")
    log.create_topic("web.access", 3)
    assert json.loads((root / "web.access" / "topic.json").read_text()) == {
        "format_version": 1,
        "name": "web.access",
        "topic_id": "abc",
        "partitions": 3,
        "created": "2024-01-02T00:00:00Z",
    }


def test_segments_are_named_by_their_base_offset(four_segments: FileLog, root: Path, segment_files: Files) -> None:
    names = [path.name for path in segment_files(root, "t")]
    assert names == [f"{base:020d}.parquet" for base in (0, 3, 6, 9)]


def test_segment_has_the_columns_of_kafka(four_segments: FileLog, root: Path, segment_files: Files) -> None:
    table = pq.read_table(segment_files(root, "t")[1])
    assert table.schema.remove_metadata().equals(SEGMENT_SCHEMA)
    assert table["topic"].to_pylist() == ["t"] * 3
    assert table["offset"].to_pylist() == [3, 4, 5]
    assert table["timestampType"].to_pylist() == [1, 1, 1]


def test_given_time_is_marked_as_create_time(file_log: FileLog, root: Path, segment_files: Files) -> None:
    file_log.create_topic("t", 1)
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    file_log.append("t", 0, [NewRecord(value=b"a", timestamp=moment), NewRecord(value=b"b")])
    assert pq.read_table(segment_files(root, "t")[0])["timestampType"].to_pylist() == [0, 1]


def test_large_segment_has_several_row_groups(file_log: FileLog, root: Path, segment_files: Files) -> None:
    file_log.create_topic("t", 1)
    file_log.append("t", 0, pa.table({"value": pa.nulls(200_000, pa.binary())}))
    metadata = pq.read_metadata(segment_files(root, "t")[0])
    assert metadata.num_row_groups == 4
    assert file_log.bounds("t")[0].until_offset == 200_000


def test_two_logs_of_one_folder_are_one_log(four_segments: FileLog, root: Path) -> None:
    assert FileLog(root).bounds("t") == four_segments.bounds("t")
    assert FileLog(str(root)).topics() == four_segments.topics()


def test_scan_names_only_files_that_hold_the_range(four_segments: FileLog) -> None:
    topic_id = four_segments.topic("t").topic_id
    scan = four_segments.scan(topic_id, [OffsetRange(TopicPartition("t", 0), 4, 7)])
    assert [int(Path(file).stem) for file in scan.files] == [3, 6]
    assert all(Path(file).is_absolute() for file in scan.files)


def test_strange_files_beside_segments_are_left_alone(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    folder = segment_files(root, "t")[0].parent
    for name in ("3.parquet", "notes.txt", "00000000000000000004.parquet.crc", ".hidden"):
        (folder / name).write_text("?")
    (root / "README").write_text("a log")
    (root / "not-a-topic").mkdir()
    assert len(read(four_segments, "t")) == 12
    assert [topic.name for topic in four_segments.topics()] == ["t"]


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b'{"format_version": 1, "name": "t"}', b"[]"])
def test_damaged_topic_file_is_an_error_that_names_it(file_log: FileLog, root: Path, content: bytes) -> None:
    file_log.create_topic("t", 1)
    (root / "t" / "topic.json").write_bytes(content)
    with pytest.raises(LogError, match=r"t/topic\.json does not describe a topic"):
        file_log.topic("t")


def test_topic_file_of_a_newer_version_is_refused(file_log: FileLog, root: Path) -> None:
    file_log.create_topic("t", 1)
    path = root / "t" / "topic.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(LogError, match="expected format_version 1 and name t, found 2"):
        file_log.topic("t")


def test_log_that_is_not_there_is_empty_and_says_so(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "nowhere")
    assert list(log.topics()) == []
    with pytest.raises(UnknownTopic, match=r"no topic 't' in .*nowhere; there are no topics"):
        log.bounds("t")
    assert not (tmp_path / "nowhere").exists()


def test_file_in_the_place_of_the_log_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    with pytest.raises(StoreError, match=r"cannot use .*/log"):
        FileLog(tmp_path / "log").topics()
    with pytest.raises(TidemillError):
        FileLog(tmp_path / "log").create_topic("t", 1)


def test_path_that_spark_takes_for_a_pattern_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has \[ \] in its path"):
        FileLog(tmp_path / "log[1]")


def test_trimming_deletes_segments_wholly_below_only(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    four_segments.trim("t", 0, 7)
    assert [int(path.stem) for path in segment_files(root, "t")] == [6, 9]
    assert [r.offset for r in read(four_segments, "t")] == [7, 8, 9, 10, 11]
    four_segments.trim("t", 0, 9)
    assert [int(path.stem) for path in segment_files(root, "t")] == [9]


def test_newest_segment_survives_trimming_everything(four_segments: FileLog, root: Path, segment_files: Files) -> None:
    four_segments.trim("t", 0, 12)
    assert [int(path.stem) for path in segment_files(root, "t")] == [9]
    assert FileLog(root).bounds("t")[0] == OffsetRange(TopicPartition("t", 0), 12, 12)


def test_only_the_newest_start_is_kept(four_segments: FileLog, root: Path) -> None:
    for before in (2, 5, 8):
        four_segments.trim("t", 0, before)
    assert [int(path.stem) for path in root.glob("t/*/0/*.start")] == [8]


def test_deleting_a_topic_removes_its_files(four_segments: FileLog, root: Path) -> None:
    four_segments.delete_topic("t")
    assert not list(root.glob("t/**/*.parquet"))
    assert list(four_segments.topics()) == []


def test_scan_of_a_deleted_and_recreated_topic_never_reads_old_files(
    four_segments: FileLog, read: Read, some_records: Make
) -> None:
    four_segments.delete_topic("t")
    four_segments.create_topic("t", 1)
    four_segments.append("t", 0, some_records("new"))
    assert [r.value for r in read(four_segments, "t")] == [b"new"]


def test_rewriting_by_hand_is_refused_even_for_equal_records(four_segments: FileLog, some_records: Make) -> None:
    with pytest.raises(LogInputError, match="already written and cannot change"):
        four_segments.append("t", 0, some_records("0", "1", "2"), at=0)
