"""What every log promises, shown on each of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from tidemill.core.errors import LogInputError, OffsetsLost, TopicRecreated, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Record
from tidemill.log.reading import read_records, read_topic
from tidemill.log.records import NewRecord
from tidemill.log.writable import WritableLog

Make = Callable[..., list[NewRecord]]
Read = Callable[..., list[Record]]


def a_range(start: int, until: int, *, topic: str = "t", partition: int = 0) -> OffsetRange:
    return OffsetRange(TopicPartition(topic, partition), start, until)


def test_three_records_get_offsets_0_1_2(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    assert any_log.append("t", 0, some_records("a", "b", "c")) == a_range(0, 3)
    assert [(r.offset, r.value) for r in read(any_log, "t")] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_reading_a_range_twice_gives_equal_bytes(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b"))
    any_log.append("t", 0, some_records("c", "d"))
    first = read(any_log, "t", 0, 1, 3)
    any_log.append("t", 0, some_records("e"))
    assert [r.value for r in first] == [b"b", b"c"]
    assert read(any_log, "t", 0, 1, 3) == first


def test_offsets_go_on_behind_the_last_append(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 2)
    any_log.append("t", 1, some_records("a", "b"))
    assert any_log.append("t", 1, some_records("c")) == a_range(2, 3, partition=1)
    assert any_log.bounds("t") == {0: a_range(0, 0), 1: a_range(0, 3, partition=1)}


def test_order_within_a_partition_is_that_of_appending(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 2)
    for value in ("a1", "b1", "a2", "b2", "a3"):
        any_log.append("t", 0 if value.startswith("a") else 1, some_records(value))
    assert [r.value for r in read(any_log, "t", 0)] == [b"a1", b"a2", b"a3"]
    assert [r.value for r in read(any_log, "t", 1)] == [b"b1", b"b2"]


def test_rewriting_an_offset_is_an_error(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b", "c"))
    with pytest.raises(LogInputError, match=r"t partition 0.*offset 1 is already written.*next offset is 3"):
        any_log.append("t", 0, some_records("x"), at=1)
    assert [r.value for r in read(any_log, "t")] == [b"a", b"b", b"c"]


def test_appending_past_the_end_is_an_error(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    with pytest.raises(LogInputError, match=r"offset 5 would leave a hole.*next offset is 0"):
        any_log.append("t", 0, some_records("x"), at=5)
    assert any_log.append("t", 0, some_records("x"), at=0) == a_range(0, 1)


def test_everything_about_a_record_is_kept(any_log: WritableLog, read: Read) -> None:
    any_log.create_topic("t", 1)
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    given = NewRecord(value=b"\xff\x00", key=b"", timestamp=before_1970, headers=(("h", b"1"), ("h", None), ("", b"")))
    any_log.append("t", 0, [given, NewRecord(value=None)])
    first, tombstone = read(any_log, "t")
    assert first == Record(
        topic="t",
        partition=0,
        offset=0,
        timestamp=before_1970,
        key=b"",
        value=b"\xff\x00",
        headers=given.headers,
    )
    assert (tombstone.value, tombstone.key, tombstone.headers) == (None, None, ())


def test_record_without_a_time_gets_the_time_of_its_append(any_log: WritableLog, read: Read) -> None:
    any_log.create_topic("t", 1)
    before = datetime.now(UTC)
    any_log.append("t", 0, [NewRecord(value=b"a")])
    assert before - timedelta(milliseconds=1) <= read(any_log, "t")[0].timestamp <= datetime.now(UTC)


def test_time_of_another_zone_is_the_same_moment(any_log: WritableLog, read: Read) -> None:
    any_log.create_topic("t", 1)
    moment = datetime.fromisoformat("2014-03-23T15:07:00-07:00")
    any_log.append("t", 0, [NewRecord(value=b"a", timestamp=moment)])
    assert read(any_log, "t")[0].timestamp == moment


def test_time_without_a_zone_is_refused() -> None:
    with pytest.raises(LogInputError, match="no time zone"):
        NewRecord(value=b"", timestamp=datetime(2024, 1, 1))  # noqa: DTZ001


def test_a_table_is_appended_like_records(any_log: WritableLog, read: Read) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, pa.table({"value": ["a", None], "key": pa.array([b"k", None], pa.large_binary())}))
    assert [(r.key, r.value) for r in read(any_log, "t")] == [(b"k", b"a"), (None, None)]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"key": [b"k"]}),  # no value
        pa.table({"value": [b"v"], "offset": [7]}),  # offsets are the log's to give
        pa.table({"value": [b"v"], "timestamp": ["yesterday"]}),
    ],
)
def test_a_table_with_other_columns_is_refused(any_log: WritableLog, table: pa.Table) -> None:
    any_log.create_topic("t", 1)
    with pytest.raises(LogInputError):
        any_log.append("t", 0, table)
    assert any_log.bounds("t")[0] == a_range(0, 0)


def test_appending_nothing_changes_nothing(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a"))
    assert any_log.append("t", 0, []) == a_range(1, 1)
    assert any_log.bounds("t")[0] == a_range(0, 1)


def test_append_of_more_than_a_million_records_is_refused(any_log: WritableLog) -> None:
    any_log.create_topic("t", 1)
    with pytest.raises(LogInputError, match="1000001 records, at most 1000000"):
        any_log.append("t", 0, pa.table({"value": pa.nulls(1_000_001, pa.binary())}))


def test_trimmed_records_are_gone_and_named(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    for first in ("a", "c", "e"):
        any_log.append("t", 0, some_records(first, first))
    assert any_log.trim("t", 0, 3) == a_range(3, 6)
    assert any_log.bounds("t")[0] == a_range(3, 6)
    assert [(r.offset, r.value) for r in read(any_log, "t")] == [(3, b"c"), (4, b"e"), (5, b"e")]
    with pytest.raises(OffsetsLost, match=r"topic t partition 0: offsets 1 to 2 are gone.*from 1.*starts at 3"):
        read(any_log, "t", 0, 1, 5)


def test_trimming_everything_keeps_the_end(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b"))
    assert any_log.trim("t", 0, 2) == a_range(2, 2)
    assert any_log.append("t", 0, some_records("c")) == a_range(2, 3)
    assert [(r.offset, r.value) for r in read(any_log, "t")] == [(2, b"c")]


def test_trimming_lower_than_the_start_changes_nothing(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b", "c"))
    any_log.trim("t", 0, 2)
    assert any_log.trim("t", 0, 1) == a_range(2, 3)
    assert any_log.trim("t", 0, 2) == a_range(2, 3)


def test_trimming_past_the_end_is_an_error(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a"))
    with pytest.raises(LogInputError, match=r"before offset 2: the log ends at 1"):
        any_log.trim("t", 0, 2)


def test_range_past_the_end_is_an_error_that_names_it(any_log: WritableLog, some_records: Make, read: Read) -> None:
    any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b"))
    with pytest.raises(OffsetsLost, match=r"topic t partition 0: offsets 2 to 4 are not there.*up to 5.*ends at 2"):
        read(any_log, "t", 0, 0, 5)
    with pytest.raises(OffsetsLost, match=r"offset 7 is not there"):
        read(any_log, "t", 0, 7, 8)


def test_topic_created_again_has_another_identity(any_log: WritableLog, some_records: Make, read: Read) -> None:
    old = any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a"))
    any_log.delete_topic("t")
    new = any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("b"))
    assert new.topic_id != old.topic_id
    with pytest.raises(TopicRecreated, match=f"expected id {old.topic_id}, found {new.topic_id}"):
        any_log.scan(old.topic_id, [a_range(0, 1)])
    assert [r.value for r in read(any_log, "t")] == [b"b"]


def test_deleted_topic_is_unknown(any_log: WritableLog, some_records: Make) -> None:
    topic = any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a"))
    any_log.delete_topic("t")
    for use in (
        lambda: any_log.topic("t"),
        lambda: any_log.bounds("t"),
        lambda: any_log.scan(topic.topic_id, [a_range(0, 1)]),
        lambda: any_log.append("t", 0, some_records("b")),
        lambda: any_log.trim("t", 0, 0),
        lambda: any_log.delete_topic("t"),
    ):
        with pytest.raises(UnknownTopic, match="no topic 't'"):
            use()


def test_unknown_topic_lists_those_that_exist(any_log: WritableLog) -> None:
    any_log.create_topic("web.access", 1)
    any_log.create_topic("logins", 1)
    with pytest.raises(UnknownTopic, match=r"'web\.acces'.*topics there: logins, web\.access") as refused:
        any_log.topic("web.acces")
    assert refused.value.fix.startswith("did you mean `web.access`? Otherwise check the name")
    with pytest.raises(UnknownTopic):
        any_log.topic("../web.access")


def test_topics_are_listed_by_name(any_log: WritableLog) -> None:
    assert list(any_log.topics()) == []
    made = [any_log.create_topic(name, n) for n, name in enumerate(("b", "a-b", "a"), 1)]
    assert list(any_log.topics()) == sorted(made, key=lambda topic: topic.name)
    assert any_log.topic("a") == made[2]


def test_creating_a_topic_that_exists_is_an_error(any_log: WritableLog) -> None:
    first = any_log.create_topic("t", 3)
    with pytest.raises(LogInputError, match=rf"already.*3 partitions.*{first.topic_id}"):
        any_log.create_topic("t", 1)
    assert any_log.topic("t") == first


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ä", ".hidden", "x" * 250, "a\n"])
def test_name_that_kafka_would_refuse_is_refused(any_log: WritableLog, name: str) -> None:
    with pytest.raises(LogInputError, match="cannot be the name"):
        any_log.create_topic(name, 1)


def test_topic_needs_a_partition(any_log: WritableLog) -> None:
    with pytest.raises(LogInputError, match="at least 1"):
        any_log.create_topic("t", 0)


@pytest.mark.parametrize("partition", [-1, 2])
def test_partition_that_is_not_there_is_an_error(any_log: WritableLog, some_records: Make, partition: int) -> None:
    any_log.create_topic("t", 2)
    with pytest.raises(LogInputError, match=r"it has 0 to 1"):
        any_log.append("t", partition, some_records("a"))


def test_planned_partition_that_is_not_there_is_lost(any_log: WritableLog) -> None:
    topic = any_log.create_topic("t", 1)
    with pytest.raises(OffsetsLost, match="now has 1 partition"):
        any_log.scan(topic.topic_id, [a_range(0, 1, partition=1)])


def test_scan_covers_several_ranges_and_partitions(any_log: WritableLog, some_records: Make) -> None:
    topic = any_log.create_topic("t", 2)
    for _ in range(3):
        any_log.append("t", 0, some_records("a", "b", "c"))
        any_log.append("t", 1, some_records("x", "y"))
    ranges = [a_range(1, 2), a_range(5, 8), a_range(3, 6, partition=1), a_range(4, 4)]
    scan = any_log.scan(topic.topic_id, ranges)
    found = [(r.partition, r.offset, r.value) for r in read_records(scan)]
    assert scan.ranges == tuple(ranges)
    assert found == [
        (0, 1, b"b"), (0, 5, b"c"), (0, 6, b"a"), (0, 7, b"b"), (1, 3, b"y"), (1, 4, b"x"), (1, 5, b"y"),
    ]  # fmt: skip


def test_overlapping_ranges_give_each_record_once(any_log: WritableLog, some_records: Make) -> None:
    topic = any_log.create_topic("t", 1)
    any_log.append("t", 0, some_records("a", "b", "c"))
    scan = any_log.scan(topic.topic_id, [a_range(0, 2), a_range(1, 3)])
    assert [r.offset for r in read_records(scan)] == [0, 1, 2]


def test_scan_of_nothing_is_empty(any_log: WritableLog) -> None:
    topic = any_log.create_topic("t", 1)
    assert list(read_records(any_log.scan(topic.topic_id, []))) == []
    assert list(read_records(any_log.scan(topic.topic_id, [a_range(0, 0)]))) == []


def test_scan_is_of_one_topic(any_log: WritableLog) -> None:
    topic = any_log.create_topic("t", 1)
    with pytest.raises(LogInputError, match="one topic"):
        any_log.scan(topic.topic_id, [a_range(0, 0), a_range(0, 0, topic="u")])


def test_limited_reading_stops_in_the_next_partition(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 3)
    for partition in range(3):
        any_log.append("t", partition, some_records("a", "b"))
    found = [(r.partition, r.offset) for r in read_topic(any_log, "t", limit=3)]
    assert found == [(0, 0), (0, 1), (1, 0)]
    assert [r.offset for r in read_topic(any_log, "t", partition=2, from_offset=1)] == [1]


def test_usage_grows_with_records(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    empty = any_log.usage("t")[0].bytes
    any_log.append("t", 0, some_records("a" * 100))
    assert empty == 0
    assert any_log.usage("t")[0].bytes >= 100
