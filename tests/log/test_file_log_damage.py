"""Damages of a log of plain files: each is an error that names what is wrong, and nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidemill.core.errors import OffsetsLost, SegmentDamaged
from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.records import NewRecord

Make = Callable[..., list[NewRecord]]
Read = Callable[..., list[Record]]
Files = Callable[..., list[Path]]


def test_hole_names_the_missing_offsets(four_segments: FileLog, root: Path, segment_files: Files, read: Read) -> None:
    segment_files(root, "t")[1].unlink()
    with pytest.raises(OffsetsLost, match=r"topic t partition 0: offsets 3 to 5 are missing.*at 3.*next at 6"):
        read(four_segments, "t")
    with pytest.raises(OffsetsLost, match=r"offset 5 is missing[\s\S]*trim t --partition 0 --before 6"):
        read(four_segments, "t", 0, 5, 6)
    assert [r.offset for r in read(four_segments, "t", 0, 6, 12)] == list(range(6, 12))


def test_hole_of_a_segment_under_a_wrong_name_is_told_as_that(
    four_segments: FileLog, segment_files: Files, root: Path, read: Read
) -> None:
    second = segment_files(root, "t")[1]
    second.rename(second.with_stem(f"{4:020}"))
    with pytest.raises(SegmentDamaged, match=r"first offset 4, found[\s\S]* first offset 3"):
        read(four_segments, "t")


def test_hole_at_the_front_is_not_taken_for_retention(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    segment_files(root, "t")[0].unlink()
    assert four_segments.bounds("t")[0].from_offset == 0
    with pytest.raises(OffsetsLost, match="offsets 0 to 2 are missing"):
        read(four_segments, "t")


def test_hole_can_be_given_up_by_trimming(four_segments: FileLog, root: Path, segment_files: Files, read: Read) -> None:
    segment_files(root, "t")[1].unlink()
    four_segments.trim("t", 0, 6)
    assert [r.offset for r in read(four_segments, "t")] == list(range(6, 12))


def test_lost_newest_segments_are_noticed_below_the_start(
    four_segments: FileLog, root: Path, segment_files: Files
) -> None:
    four_segments.trim("t", 0, 10)
    segment_files(root, "t")[-1].unlink()
    with pytest.raises(OffsetsLost, match=r"starts at 10, but its newest segment ends at 0"):
        four_segments.bounds("t")
    with pytest.raises(OffsetsLost):
        four_segments.append("t", 0, [NewRecord(value=b"")])


@pytest.mark.parametrize("left", [0, 1, 11, 100, -1, -100])
def test_segment_cut_short_is_damaged_and_named(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read, left: int
) -> None:
    victim = segment_files(root, "t")[1]
    victim.write_bytes(victim.read_bytes()[:left])
    with pytest.raises(SegmentDamaged, match=victim.name):
        read(four_segments, "t")
    assert [r.offset for r in read(four_segments, "t", 0, 0, 3)] == [0, 1, 2]


def test_segment_that_lost_bytes_before_its_footer_is_damaged(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    victim = segment_files(root, "t")[2]
    data = victim.read_bytes()
    victim.write_bytes(data[:50] + data[60:])
    with pytest.raises(SegmentDamaged, match=rf"expected {len(data)} bytes, found {len(data) - 10}"):
        read(four_segments, "t")


def test_garbage_in_the_place_of_a_segment_is_damaged(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    victim = segment_files(root, "t")[1]
    for garbage in (b"x" * 1000, b"PAR1" + b"\xff" * 100 + b"PAR1", b"\x00" * 4096):
        victim.write_bytes(garbage)
        with pytest.raises(SegmentDamaged, match=victim.name):
            read(four_segments, "t")


def test_flipped_bytes_are_found_when_the_records_are_read(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    victim = segment_files(root, "t")[1]
    data = bytearray(victim.read_bytes())
    column = pq.read_metadata(victim).row_group(0).column(6)
    assert column.path_in_schema == "value"
    data[column.data_page_offset + column.total_compressed_size - 1] ^= 0xFF
    victim.write_bytes(data)
    with pytest.raises(SegmentDamaged, match=victim.name):
        read(four_segments, "t")


def test_foreign_parquet_file_is_damaged(four_segments: FileLog, root: Path, segment_files: Files, read: Read) -> None:
    victim = segment_files(root, "t")[1]
    table = pq.read_table(victim).replace_schema_metadata(None)
    pq.write_table(table, victim)
    with pytest.raises(SegmentDamaged, match="another origin"):
        read(four_segments, "t")


def test_segment_under_the_name_of_another_is_damaged(
    four_segments: FileLog, root: Path, segment_files: Files, read: Read
) -> None:
    first, second = segment_files(root, "t")[:2]
    second.write_bytes(first.read_bytes())
    with pytest.raises(SegmentDamaged, match=rf"{second.name}.*first offset 3, found that of .*, first offset 0"):
        read(four_segments, "t")


def test_segment_of_another_log_is_damaged(
    four_segments: FileLog, tmp_path: Path, segment_files: Files, read: Read
) -> None:
    other = FileLog(tmp_path / "other")
    other.create_topic("t", 1)
    other.append("t", 0, [NewRecord(value=b"x")] * 3)
    segment_files(tmp_path / "log", "t")[0].write_bytes(segment_files(tmp_path / "other", "t")[0].read_bytes())
    with pytest.raises(SegmentDamaged, match=rf"found that of topic t .{other.topic('t').topic_id}.,"):
        read(four_segments, "t")


def test_overlapping_segments_are_damaged(
    four_segments: FileLog, tmp_path: Path, segment_files: Files, read: Read
) -> None:
    topic_id = four_segments.topic("t").topic_id
    longer = FileLog(tmp_path / "longer", new_id=lambda: topic_id)
    longer.create_topic("t", 1)
    longer.append("t", 0, [NewRecord(value=b"x")] * 4)
    segment_files(tmp_path / "log", "t")[0].write_bytes(segment_files(tmp_path / "longer", "t")[0].read_bytes())
    with pytest.raises(SegmentDamaged, match=r"next segment at 3, found records up to 4"):
        read(four_segments, "t")


def test_damaged_newest_segment_stops_appending(
    four_segments: FileLog, root: Path, segment_files: Files, some_records: Make
) -> None:
    victim = segment_files(root, "t")[-1]
    victim.write_bytes(b"")
    with pytest.raises(SegmentDamaged, match=victim.name):
        four_segments.append("t", 0, some_records("x"))
    assert len(segment_files(root, "t")) == 4
