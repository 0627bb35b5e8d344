"""Reading ranges of Kafka in this process: where they end, and when brokers have been silent for too long."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from tidemill.core.errors import LogUnreachable, OffsetsLost
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import KafkaScan
from tidemill.log import kafka_reading
from tidemill.log.kafka_reading import fetched, read_scan

LATEST = 42
"""The record at this offset has the latest time that a producer can give."""


class Message(NamedTuple):
    """What a broker sends: a record, or an error."""

    at: int
    of: int = 0
    code: int | None = None

    def partition(self) -> int:
        return self.of

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def timestamp(self) -> tuple[int, int]:
        return 1, 2**63 - 1 if self.at == LATEST else 1_000

    def topic(self) -> str:
        return "t"

    def value(self) -> bytes:
        return b"%d" % self.at

    def key(self) -> None:
        return None

    headers = key


def end(at: int, of: int = 0) -> Message:
    """The broker says that the partition ends here."""
    return Message(at, of, KafkaError._PARTITION_EOF)


@dataclass
class Fake:
    """A consumer that gives these answers, and then nothing more, or the last one for ever."""

    answers: list[list[Message]]
    repeats: bool = False
    paused: list[int] = field(default_factory=list)
    come: list[Message] = field(default_factory=list)

    def assign(self, _: Any) -> None:
        """Positions are what the answers say."""

    resume = assign

    def pause(self, places: Sequence[Any]) -> None:
        self.paused += [place.partition for place in places]

    def poll(self, _: float) -> Message | None:
        """The first message of an answer; `consume` gives the others."""
        answer = (self.answers.pop(0) if self._goes_on else self.answers[0]) if self.answers else []
        self.come = answer[1:]
        return answer[0] if answer else None

    def consume(self, most: int, timeout: float) -> list[Message]:
        """What has come: nothing is waited for."""
        assert timeout == 0
        come, self.come = self.come[:most], self.come[most:]
        return come

    @property
    def _goes_on(self) -> bool:
        return len(self.answers) > 1 or not self.repeats

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the consumer give these answers."""

    def give(*given: list[Message], repeats: bool = False) -> Fake:
        fake = Fake([*given], repeats)
        monkeypatch.setattr(kafka_reading, "Consumer", lambda _: fake)
        monkeypatch.setattr(kafka_reading, "PATIENCE", 0.05)
        return fake

    return give


def scan(*bounds: tuple[int, int, int]) -> KafkaScan:
    ranges = tuple(OffsetRange(TopicPartition("t", of), low, high) for of, low, high in bounds)
    return KafkaScan(topic="t", ranges=ranges, java={}, client={})


def offsets(found: Any) -> list[tuple[int, int]]:
    return [(row["partition"], row["offset"]) for row in found.rows.to_pylist()]


def test_end_of_the_partition_ends_only_a_range_that_it_reaches(answers: Any) -> None:
    # A new leader may not know the last records yet.
    answers([Message(0), end(1)], [], [Message(1)], [end(4)])
    assert offsets(fetched(scan((0, 0, 4)), most=1_000)) == [(0, 0), (0, 1)]
    answers([Message(0), end(1)])
    with pytest.raises(LogUnreachable, match="gave no record"):
        fetched(scan((0, 0, 4)), most=1_000)


def test_records_behind_a_range_do_not_count_and_are_asked_for_no_more(answers: Any) -> None:
    fake = answers([Message(0), Message(1), Message(2)], [Message(5, 1)], [Message(3), Message(6, 1)])
    assert offsets(fetched(scan((0, 0, 2), (1, 5, 7)), most=1_000)) == [(0, 0), (0, 1), (1, 5), (1, 6)]
    assert fake.paused == [0, 1]


def test_partition_that_is_silent_is_told_whatever_others_send(answers: Any) -> None:
    answers([Message(0)], [Message(7), end(8)], repeats=True)
    with pytest.raises(LogUnreachable, match=r"t-1 \[5, 7\)"):
        list(read_scan(scan((0, 0, 1), (1, 5, 7))))


def test_deleted_records_and_times_out_of_bounds_are_told(answers: Any) -> None:
    answers([Message(0, 0, KafkaError._AUTO_OFFSET_RESET)])
    with pytest.raises(OffsetsLost, match="no longer holds its start"):
        fetched(scan((0, 0, 1)), most=1_000)
    answers([Message(LATEST)])
    found = fetched(scan((0, LATEST, LATEST + 1)), most=1_000)
    assert found is not None
    assert found.rows["timestamp"].cast("int64").to_pylist()[0] > 9 * 10**18


def test_large_records_and_many_ranges_are_left_to_spark(answers: Any) -> None:
    answers([Message(number) for number in range(10)])
    assert fetched(scan((0, 0, 10)), most=5) is None
    assert fetched(scan(*((0, 2 * n, 2 * n + 1) for n in range(9))), most=1_000) is None


@pytest.mark.parametrize("collects", [True, False])
def test_collector_is_afterwards_what_it_was_even_if_the_cluster_is_silent(answers: Any, collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        answers([Message(0)])
        with pytest.raises(LogUnreachable):
            fetched(scan((0, 0, 4)), most=1_000)
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
