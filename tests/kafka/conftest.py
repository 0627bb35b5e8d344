"""A real broker for the tests of this folder, and the means to write to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from broker import Broker
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tidemill.log.kafka_access import Access
from tidemill.log.kafka_topics import KafkaTopics


class Cluster:
    """A broker, and what tests do to its topics."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.servers})

    @property
    def log(self) -> KafkaTopics:
        """Its topics, as Tidemill sees them."""
        return KafkaTopics(Access(servers=self.broker.servers))

    def topic(self, partitions: int = 1, *, name: str | None = None, **config: str) -> str:
        """A new topic of a name that nobody has."""
        name = name or f"t{uuid.uuid4().hex[:12]}"
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        made[name].result(20)
        end = time.monotonic() + 20
        while name not in self.admin.list_topics(timeout=20).topics and time.monotonic() < end:
            time.sleep(0.02)
        return name

    def delete(self, name: str) -> None:
        """The topic is gone."""
        self.admin.delete_topics([name])[name].result(20)

    def grow(self, name: str, partitions: int) -> None:
        """The topic has so many partitions from now on."""
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(20)

    def producer(self, **more: object) -> Producer:
        """One that waits for every answer."""
        return Producer({"bootstrap.servers": self.broker.servers, "linger.ms": 0, **more})

    def feed(self, name: str, values: Sequence[bytes | None], partition: int = 0) -> None:
        """Append records with these values."""
        producer = self.producer()
        for value in values:
            producer.produce(name, value=value, partition=partition)
        assert producer.flush(20) == 0


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker for all tests of a process; each has topics of its own."""
    with Broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield Cluster(broker)


@pytest.fixture
def a_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Brokers of a test's own, which end with it."""
    made: list[Broker] = []

    def make(**settings: object) -> Broker:
        made.append(Broker(tmp_path / f"broker-{len(made)}", **settings))
        return made[-1]

    yield make
    for broker in made:
        broker.stop()
