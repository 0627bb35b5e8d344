"""Topics of a Kafka cluster as a log: their bounds and identities.

Only committed transactions count: a partition ends where its first open transaction begins. Offsets of aborted
transactions, of transaction markers and of records that compaction removed are gaps: a range may hold fewer records
than its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Self, TypeVar

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from tidemill.core.errors import LogRefused, LogUnreachable
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import KafkaScan
from tidemill.core.once import once
from tidemill.core.time.times import micros
from tidemill.log import refusals
from tidemill.log.interface import Topic
from tidemill.log.kafka_access import Access

PATIENCE = 15.0
"""Seconds to wait for an answer of the cluster."""

_UNKNOWN = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED)
_COMMITTED = IsolationLevel.READ_COMMITTED
_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Memory:
    """What one batch has asked about topics."""

    topics: dict[str, Topic] = field(default_factory=dict)
    bounds: dict[str, Mapping[int, OffsetRange]] = field(default_factory=dict)


class _Client:
    """The client for metadata of a log and its copies. It is created when it is first used and keeps its connection.

    `refusals` are what the broker has said since they were last cleared: the login or the TLS handshake failed. The
    request itself only times out then.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self.refusals: list[str] = []

    @cached_property
    def admin(self) -> AdminClient:
        quiet: dict[str, Any] = {"log_level": 0, "socket.timeout.ms": int(PATIENCE * 1000), "error_cb": self._told}
        return AdminClient(self._access.client() | quiet)

    def _told(self, error: KafkaError) -> None:
        if error.code() in _REFUSED:
            self.refusals.append(error.str())


class KafkaLog:
    """The topics of a cluster, except Kafka's internal ones."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self._client = _Client(access)
        self._memory: _Memory | None = None

    def remembering(self) -> Self:
        """See `Remembers`: the brokers are asked once for topics and bounds. The connection is the same."""
        found = copy(self)
        found._memory = _Memory()
        return found

    @property
    def admin(self) -> AdminClient:
        """The client for metadata, which keeps its connection."""
        return self._client.admin

    def names(self) -> Sequence[str]:
        """Return the names of all topics, sorted."""
        with self._asking("its topics"):
            return sorted(n for n in self.admin.list_topics(timeout=PATIENCE).topics if not n.startswith("__"))

    def topics(self) -> Sequence[Topic]:
        """Return all topics, sorted by name."""
        return self._described(self.names())

    def topic(self, name: str) -> Topic:
        """Return the topic called `name`, or raise `UnknownTopic`."""
        return once(None if self._memory is None else self._memory.topics, name, self._topic_there)

    def _topic_there(self, name: str) -> Topic:
        found = self._described([name])
        if not found:
            raise refusals.unknown_topic(name, self._where, self.names())
        return found[0]

    def _described(self, names: Sequence[str]) -> Sequence[Topic]:
        """Describe those of these topics that exist, with one request."""
        if not names:
            return []
        with self._asking(f"topic {', '.join(names)}"):
            asked = self.admin.describe_topics(TopicCollection(list(names)), request_timeout=PATIENCE)
            found = {name: self._answer(answer) for name, answer in asked.items()}
        return [
            Topic(name=name, topic_id=str(topic.topic_id), partitions=len(topic.partitions), layout="kafka")
            for name, topic in found.items()
            if topic is not None
        ]

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """Return for each partition the range from its first offset still held to the end of its committed records."""
        topic = self.topic(name)
        refusals.check_readable(topic)
        numbers = range(topic.partitions)
        starts = self._offsets(name, numbers, _EARLIEST)
        ends = self._offsets(name, numbers, LATEST)
        found = {n: OffsetRange(TopicPartition(name, n), starts[n], max(starts[n], ends[n])) for n in numbers}
        if self._memory is not None:
            self._memory.bounds[name] = found
        return found

    def waiting(self, name: str) -> Mapping[int, int]:
        """Return how many offsets of each partition wait for open transactions to end."""
        topic = self.topic(name)
        refusals.check_readable(topic)
        numbers = range(topic.partitions)
        committed = self._offsets(name, numbers, LATEST)
        written = self._offsets(name, numbers, LATEST, isolation=IsolationLevel.READ_UNCOMMITTED)
        return {n: written[n] - committed[n] for n in numbers if written[n] > committed[n]}

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> KafkaScan:
        """Check these ranges of one topic and return how to read them."""
        wanted = tuple(r for r in ranges if r)
        if not ranges:
            return KafkaScan(topic="", ranges=(), java={}, client={})
        topic = self.topic(ranges[0].topic_partition.topic)
        refusals.check_scan(topic, topic_id, ranges)
        if not self._knows(topic.name, wanted):
            held = self.bounds(topic.name)
            for item in wanted:
                refusals.check_held(item, held[item.topic_partition.partition])
        return KafkaScan(topic=topic.name, ranges=wanted, java=self.access.java(), client=self.access.client())

    def _knows(self, name: str, wanted: Sequence[OffsetRange]) -> bool:
        """Whether all of these offsets were there when this batch asked: the reader says if they are gone since."""
        known = {} if self._memory is None else self._memory.bounds.get(name, {})
        return all(not item.without(known.get(item.topic_partition.partition)) for item in wanted)

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """Return the first offset whose record has `moment` or a later time, or the end."""
        when = OffsetSpec.for_timestamp(micros(moment) // 1000)
        found = self._offsets(name, [partition], when)[partition]
        return found if found >= 0 else self.bounds(name)[partition].until_offset

    def _offsets(
        self,
        name: str,
        numbers: Iterable[int],
        which: Any,
        isolation: IsolationLevel = _COMMITTED,
    ) -> dict[int, int]:
        wanted = {Place(name, number): which for number in numbers}
        with self._asking(f"the offsets of {name}"):
            answers = self.admin.list_offsets(wanted, isolation_level=isolation, request_timeout=PATIENCE)
            found = {place.partition: self._answer(answer) for place, answer in answers.items()}
        lost = [number for number, answer in found.items() if answer is None]
        if lost:
            raise refusals.unknown_topic(name, self._where, self.names())
        return {number: answer.offset for number, answer in found.items() if answer is not None}

    def _answer(self, future: Future[T]) -> T | None:
        """The answer, or None if the topic does not exist."""
        try:
            return future.result(PATIENCE)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return None
            raise

    @property
    def _where(self) -> str:
        return f"Kafka at {self.access.servers}"

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        # Errors reported before this request belong to other requests.
        self.admin.poll(0)
        self._client.refusals.clear()
        try:
            yield
        except (KafkaException, TimeoutError) as error:
            said = error.args[0] if error.args else None
            text = said.str() if isinstance(said, KafkaError) else f"no answer in {PATIENCE:.0f} seconds"
            self.admin.poll(0)
            if self._client.refusals:
                raise LogRefused(
                    f"{self._where} does not let us in: {self._client.refusals[-1]}",
                    fix="check security, mechanism, credentials and ca in [log]",
                ) from None
            raise LogUnreachable(
                f"{self._where} was asked for {what}: {text}",
                fix="check that the cluster runs, its address, and [log] security and credentials",
            ) from None
