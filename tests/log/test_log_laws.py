"""Laws of producers and trimming, on random stories."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.file import FileLog
from tidemill.log.memory import MemoryLog
from tidemill.log.producer import ByKey, Partitioning, Producer, RoundRobin
from tidemill.log.reading import read_records, read_topic
from tidemill.log.records import NewRecord

batches_of_keys = st.lists(st.lists(st.sampled_from([None, b"", b"a", b"b", b"c"]), max_size=8), max_size=8)
partitionings = st.sampled_from([ByKey(), RoundRobin()])


def numbered(batches: list[list[bytes | None]]) -> list[list[NewRecord]]:
    counter = iter(range(10_000))
    return [[NewRecord(value=b"%d" % next(counter), key=key) for key in batch] for batch in batches]


@given(batches_of_keys, partitionings, st.integers(1, 4))
def test_every_record_is_in_exactly_one_partition_in_order(
    batches: list[list[bytes | None]], partitioning: Partitioning, partitions: int
) -> None:
    log = MemoryLog()
    log.create_topic("t", partitions)
    producer = Producer(log, "t", partitioning=partitioning)
    for batch in numbered(batches):
        producer.append(batch)
    by_partition = [
        [int(r.value or b"") for r in read_topic(log, "t", partition=number)] for number in range(partitions)
    ]
    assert sorted(chain.from_iterable(by_partition)) == list(range(sum(map(len, batches))))
    assert all(found == sorted(found) for found in by_partition)


@given(batches_of_keys, st.integers(1, 4))
def test_round_robin_partitions_differ_by_one_record_at_most(
    batches: list[list[bytes | None]], partitions: int
) -> None:
    log = MemoryLog()
    log.create_topic("t", partitions)
    producer = Producer(log, "t", partitioning=RoundRobin())
    for batch in numbered(batches):
        producer.append(batch)
    lengths = [len(held) for held in log.bounds("t").values()]
    assert max(lengths) - min(lengths) <= 1


@given(batches_of_keys, partitionings, st.integers(1, 4), st.data())
def test_repeating_any_finished_batch_changes_nothing(
    batches: list[list[bytes | None]], partitioning: Partitioning, partitions: int, data: st.DataObject
) -> None:
    plain, repeating = MemoryLog(), MemoryLog()
    made = numbered(batches)
    for log in (plain, repeating):
        log.create_topic("t", partitions)
    for sequence, batch in enumerate(made):
        Producer(plain, "t", partitioning=partitioning, producer_id="p").append(batch, sequence=sequence)
        again = Producer(repeating, "t", partitioning=partitioning, producer_id="p")
        placed = again.append(batch, sequence=sequence)
        older = data.draw(st.integers(0, sequence))
        again.append(made[older], sequence=older)
        assert again.append(batch, sequence=sequence) == placed
    left, right = ([(r.partition, r.offset, r.value) for r in read_topic(log, "t")] for log in (plain, repeating))
    assert left == right


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.data())
@settings(deadline=None, max_examples=30)
def test_trimming_a_file_log_keeps_exactly_what_is_not_below(sizes: list[int], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = FileLog(folder)
        log.create_topic("t", 1)
        for size in sizes:
            log.append("t", 0, [NewRecord(value=b"x")] * size)
        end, start = sum(sizes), 0
        for before in data.draw(st.lists(st.integers(0, end), min_size=1, max_size=3)):
            start = max(start, before)
            assert log.trim("t", 0, before) == OffsetRange(TopicPartition("t", 0), start, end)
            assert [r.offset for r in read_topic(log, "t")] == list(range(start, end))
        needed = {base for base in (sum(sizes[:n]) for n in range(len(sizes))) if base >= start}
        kept = {int(path.stem) for path in Path(folder).glob("t/*/0/*.parquet")}
        assert needed <= kept
        assert len(kept) <= max(len(needed) + 1, 1)


@dataclass
class _Model:
    """What the log should hold: values of one partition from offset `start` on."""

    values: list[bytes] = field(default_factory=list)
    start: int = 0


class FileLogMachine(RuleBasedStateMachine):
    """A file log against a list, with appends, producers' retries, trims and topics created again."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.log = FileLog(self.folder.name)

    def teardown(self) -> None:
        self.folder.cleanup()

    @initialize()
    def create(self) -> None:
        self.topic = self.log.create_topic("t", 1)
        self.model = _Model()
        self.sent: list[list[NewRecord]] = []

    @rule(values=st.lists(st.binary(max_size=3), max_size=4))
    def append(self, values: list[bytes]) -> None:
        placed = self.log.append("t", 0, [NewRecord(value=value) for value in values])
        assert placed.from_offset == self.model.start + len(self.model.values)
        self.model.values += values

    @rule(values=st.lists(st.binary(max_size=3), min_size=1, max_size=4))
    def produce(self, values: list[bytes]) -> None:
        batch = [NewRecord(value=value) for value in values]
        Producer(self.log, "t", producer_id="p").append(batch, sequence=len(self.sent))
        self.sent.append(batch)
        self.model.values += values

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def produce_again(self, data: st.DataObject) -> None:
        sequence = data.draw(st.integers(0, len(self.sent) - 1))
        Producer(self.log, "t", producer_id="p").append(self.sent[sequence], sequence=sequence)

    @rule(data=st.data())
    def trim(self, data: st.DataObject) -> None:
        end = self.model.start + len(self.model.values)
        before = data.draw(st.integers(0, end))
        self.log.trim("t", 0, before)
        gone = max(0, before - self.model.start)
        self.model = _Model(values=self.model.values[gone:], start=self.model.start + gone)

    @rule()
    def create_again(self) -> None:
        self.log.delete_topic("t")
        self.create()

    @rule()
    def open_again(self) -> None:
        self.log = FileLog(self.folder.name)

    @rule(data=st.data())
    def continue_from_where_a_reader_is(self, data: st.DataObject) -> None:
        start, until = self.model.start, self.model.start + len(self.model.values)
        at, log = data.draw(st.integers(0, until + 1)), self.log.remembering()
        held = log.bounds_since("t", {0: at})[0]
        assert held.until_offset == until
        assert start <= held.from_offset <= max(start, at)
        for first in {f for f in (start, at, held.from_offset) if start <= f <= until}:
            scan = log.scan(self.topic.topic_id, [OffsetRange(TopicPartition("t", 0), first, until)])
            assert [record.value for record in read_records(scan)] == self.model.values[first - start :]

    @invariant()
    def log_equals_model(self) -> None:
        held = self.log.bounds("t")[0]
        assert (held.from_offset, len(held)) == (self.model.start, len(self.model.values))
        found = list(read_records(self.log.scan(self.topic.topic_id, [held])))
        assert [record.value for record in found] == self.model.values
        assert [record.offset for record in found] == list(range(held.from_offset, held.until_offset))


FileLogMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestFileLogAgainstAList = FileLogMachine.TestCase
