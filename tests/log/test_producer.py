"""Producers: where records go, and batches that are appended again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidemill.core.errors import LogInputError, TopicRecreated, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Record
from tidemill.log.file import FileLog
from tidemill.log.producer import Producer, RoundRobin
from tidemill.log.reading import read_topic
from tidemill.log.records import NewRecord
from tidemill.log.writable import ProducerBatch, WritableLog

Make = Callable[..., list[NewRecord]]
Read = Callable[..., list[Record]]


class LostAnswer(Exception):
    """The write landed, the answer did not."""


class AnswersGetLost:
    """A log whose appends to a partition land, or do not, and then fail; once."""

    def __init__(self, log: WritableLog, partition: int, *, lands: bool) -> None:
        self._log = log
        self._partition: int | None = partition
        self._lands = lands

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def append(self, topic: str, partition: int, records: pa.Table | Iterable[NewRecord], **how: Any) -> OffsetRange:
        if partition != self._partition:
            return self._log.append(topic, partition, records, **how)
        self._partition = None
        if self._lands:
            self._log.append(topic, partition, records, **how)
        raise LostAnswer


def a_range(partition: int, start: int, until: int) -> OffsetRange:
    return OffsetRange(TopicPartition("t", partition), start, until)


def values(log: WritableLog, partition: int) -> list[bytes | None]:
    return [record.value for record in read_topic(log, "t", partition=partition)]


def test_nine_keyless_records_over_three_partitions_are_three_each(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 3)
    ranges = Producer(any_log, "t", partitioning=RoundRobin()).append(some_records(*"abcdefghi"))
    assert ranges == (a_range(0, 0, 3), a_range(1, 0, 3), a_range(2, 0, 3))
    assert values(any_log, 1) == [b"b", b"e", b"h"]


def test_round_robin_goes_on_in_the_next_batch(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 3)
    producer = Producer(any_log, "t", partitioning=RoundRobin())
    for batch in ("a", "bc", "defg", "", "hi"):
        producer.append(some_records(*batch))
    assert [len(values(any_log, n)) for n in range(3)] == [3, 3, 3]
    assert values(any_log, 0) == [b"a", b"d", b"g"]


def test_records_of_one_key_are_in_one_partition_in_order(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 5)
    producer = Producer(any_log, "t")
    for batch in ("ab", "cd", "e"):
        (placed,) = producer.append(some_records(*batch, key="21"))
        assert placed.topic_partition.partition == (-973932308 & 0x7FFFFFFF) % 5
    assert values(any_log, placed.topic_partition.partition) == [b"a", b"b", b"c", b"d", b"e"]


def test_keyless_records_of_a_keyed_producer_are_dealt_in_turn(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 3)
    producer = Producer(any_log, "t")
    for _ in range(3):
        producer.append(some_records("a", "b", "c"))
    assert [len(values(any_log, n)) for n in range(3)] == [3, 3, 3]


def test_producer_of_an_unknown_topic_is_refused(any_log: WritableLog) -> None:
    with pytest.raises(UnknownTopic):
        Producer(any_log, "t")


def test_producer_of_a_topic_created_again_is_refused(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    producer = Producer(any_log, "t")
    any_log.delete_topic("t")
    any_log.create_topic("t", 1)
    with pytest.raises(TopicRecreated):
        producer.append(some_records("a"))
    assert values(any_log, 0) == []


def test_batch_appended_again_is_not_written_again(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    producer = Producer(any_log, "t", producer_id="p")
    first = producer.append(some_records("a", "b"), sequence=0)
    second = producer.append(some_records("a", "b"), sequence=1)
    assert (first, second) == ((a_range(0, 0, 2),), (a_range(0, 2, 4),))
    assert producer.append(some_records("a", "b"), sequence=1) == second
    assert producer.append(some_records("a", "b"), sequence=0) == first
    assert values(any_log, 0) == [b"a", b"b"] * 2


def test_batch_whose_answer_was_lost_is_recognised_by_a_new_process(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    with pytest.raises(LostAnswer):
        Producer(AnswersGetLost(any_log, 0, lands=True), "t", producer_id="p").append(
            some_records("a", "b"), sequence=0
        )
    restarted = Producer(any_log, "t", producer_id="p")
    assert restarted.next_sequence() == 1
    assert restarted.append(some_records("a", "b"), sequence=0) == (a_range(0, 0, 2),)
    assert values(any_log, 0) == [b"a", b"b"]


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("partition", [0, 1, 2])
def test_batch_that_crashed_between_partitions_is_completed(
    any_log: WritableLog, some_records: Make, partition: int, lands: bool
) -> None:
    any_log.create_topic("t", 3)
    before = Producer(any_log, "t", partitioning=RoundRobin(), producer_id="p")
    before.append(some_records("x", "y"), sequence=0)  # the next one is dealt from partition 2 on
    crashing = Producer(
        AnswersGetLost(any_log, partition, lands=lands), "t", partitioning=RoundRobin(), producer_id="p"
    )
    with pytest.raises(LostAnswer):
        crashing.append(some_records(*"abcd"), sequence=1)
    restarted = Producer(any_log, "t", partitioning=RoundRobin(), producer_id="p")
    assert restarted.append(some_records(*"abcd"), sequence=1) == (
        a_range(0, 1, 2),
        a_range(1, 1, 2),
        a_range(2, 0, 2),
    )
    restarted.append(some_records("z"), sequence=2)
    assert [values(any_log, n) for n in range(3)] == [[b"x", b"b", b"z"], [b"y", b"c"], [b"a", b"d"]]


def test_restarted_round_robin_goes_on_where_it_ended(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 3)
    for sequence, batch in enumerate(("a", "bc", "defg", "hi")):
        producer = Producer(any_log, "t", partitioning=RoundRobin(), producer_id="p")
        assert producer.next_sequence() == sequence
        producer.append(some_records(*batch), sequence=sequence)
    assert values(any_log, 0) == [b"a", b"d", b"g"]
    assert [len(values(any_log, n)) for n in range(3)] == [3, 3, 3]


def test_new_batch_after_one_that_landed_in_part_is_refused(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 2)
    crashing = Producer(AnswersGetLost(any_log, 1, lands=False), "t", partitioning=RoundRobin(), producer_id="p")
    with pytest.raises(LostAnswer):
        crashing.append(some_records("a", "b", "c"), sequence=0)
    restarted = Producer(any_log, "t", partitioning=RoundRobin(), producer_id="p")
    with pytest.raises(LogInputError, match=r"sequence 0 landed in part, 2 of 3[\s\S]*append sequence 0 again"):
        restarted.append(some_records("d"), sequence=1)


def test_retry_with_other_records_is_refused(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    producer = Producer(any_log, "t", producer_id="p")
    producer.append(some_records("a", "b"), sequence=0)
    with pytest.raises(LogInputError, match=r"sequence 0 of producer p landed with 2 records.*retry has 3"):
        producer.append(some_records("a", "b", "c"), sequence=0)
    assert values(any_log, 0) == [b"a", b"b"]


def test_two_producers_do_not_mix_up_their_sequences(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    one, other = (Producer(any_log, "t", producer_id=name) for name in ("one", "other"))
    one.append(some_records("a"), sequence=0)
    other.append(some_records("b"), sequence=0)
    one.append(some_records("c"), sequence=1)
    assert other.append(some_records("b"), sequence=0) == (a_range(0, 1, 2),)
    assert values(any_log, 0) == [b"a", b"b", b"c"]


def test_old_batches_of_many_are_found(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 2)
    producer = Producer(any_log, "t", partitioning=RoundRobin(), producer_id="p")
    other = Producer(any_log, "t")
    placed = []
    for sequence in range(12):
        placed.append(producer.append(some_records(f"r{sequence}"), sequence=sequence))
        other.append(some_records("noise"))
    again = [producer.append(some_records(f"r{sequence}"), sequence=sequence) for sequence in range(12)]
    assert again == placed
    assert sum(len(values(any_log, n)) for n in range(2)) == 24


def test_batch_is_recognised_after_all_its_records_were_trimmed(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    producer = Producer(any_log, "t", producer_id="p")
    producer.append(some_records("a", "b"), sequence=0)
    any_log.trim("t", 0, 2)
    assert producer.append(some_records("a", "b"), sequence=0) == (a_range(0, 0, 2),)
    assert any_log.bounds("t")[0] == a_range(0, 2, 2)


def test_zombie_of_a_producer_writes_nothing_new(any_log: WritableLog, some_records: Make) -> None:
    any_log.create_topic("t", 1)
    producer = Producer(any_log, "t", producer_id="p")
    producer.append(some_records("a"), sequence=3)
    producer.append(some_records("b"), sequence=5)
    zombie = ProducerBatch(producer_id="p", sequence=4, first_slot=0, next_slot=0, records=1)
    with pytest.raises(LogInputError, match="gone on to sequence 5"):
        any_log.append("t", 0, some_records("z"), batch=zombie)
    assert values(any_log, 0) == [b"a", b"b"]


@pytest.mark.parametrize(("producer_id", "sequence"), [("p", None), (None, 0), ("", 0), ("p", -1)])
def test_id_and_sequence_belong_together(
    any_log: WritableLog, some_records: Make, producer_id: str | None, sequence: int | None
) -> None:
    any_log.create_topic("t", 1)
    with pytest.raises(LogInputError):
        Producer(any_log, "t", producer_id=producer_id).append(some_records("a"), sequence=sequence)
    assert values(any_log, 0) == []


def test_next_sequence_of_a_new_producer_is_0(any_log: WritableLog) -> None:
    any_log.create_topic("t", 2)
    assert Producer(any_log, "t", producer_id="p").next_sequence() == 0
    assert Producer(any_log, "t").next_sequence() == 0


def test_producer_silent_while_many_others_wrote_is_still_known(tmp_path: Path, some_records: Make) -> None:
    log = FileLog(tmp_path / "log")
    log.create_topic("t", 1)
    quiet = Producer(log, "t", producer_id="quiet")
    quiet.append(some_records("a"), sequence=0)
    for number in range(150):
        Producer(log, "t", producer_id=f"file-{number:04d}-" + "x" * 500).append(some_records("b"), sequence=0)
    assert quiet.append(some_records("a"), sequence=0) == (a_range(0, 0, 1),)
    assert log.bounds("t")[0].until_offset == 151
