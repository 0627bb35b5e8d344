"""The same records in a topic of Kafka, on a broker of its own: planned, read and committed, and its rival."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from broker import Broker

from bench.baselines import PLAIN, AvailableNow, StateStore
from bench.contestant import Arena, Delivery
from bench.feed import TOPIC
from bench.report import ON_KAFKA, RIVAL_ON_KAFKA
from bench.tidemill_batch import TidemillBatch
from tidemill.core.errors import UnknownTopic
from tidemill.log.kafka_access import Access
from tidemill.log.kafka_topics import KafkaTopics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_REST = 1.0
"""Seconds after a copy, in which the broker ends the work that it has with it: it has the same cores as the batches."""


class Topic:
    """The topic that both read. The records of a round are copied into it once, before anybody's time begins."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self._log, self._of, self._rounds = KafkaTopics(Access(servers=servers)), Path(), 0

    def begin(self, arena: Arena) -> None:
        """Be empty for a new series."""
        if arena.log == self._of:
            return
        self._of, self._rounds = arena.log, 0
        with suppress(UnknownTopic):
            self._log.delete_topic(TOPIC)
            while self._log.topic(TOPIC):
                continue
        self._log.create_topic(TOPIC, 2)

    def take(self, delivery: Delivery) -> None:
        """Have the records of a round."""
        if delivery.index < self._rounds:
            return
        self._rounds = delivery.index + 1
        for number, file in enumerate(delivery.files):
            rows = pq.read_table(file, columns=["timestamp", "key", "value", "headers"])
            self._log.append(TOPIC, number % 2, rows)
        time.sleep(_REST)


class KafkaBatch(TidemillBatch):
    """A batch whose log is Kafka."""

    name = ON_KAFKA

    def __init__(self, topic: Topic) -> None:
        super().__init__()
        self._topic = topic

    def prepare(self, arena: Arena) -> None:
        self._topic.begin(arena)
        super().prepare(arena)

    def settings(self, arena: Arena) -> dict[str, Any]:
        # The markers of transactions have offsets, too: with the default, 1,000,000 records would be left to Spark.
        more = {"kafka": {"kafka": self._topic.servers}, "driver_records": 2_000_000}
        return {**super().settings(arena), **more}

    def round(self, delivery: Delivery) -> float:
        self._topic.take(delivery)
        return super().round(delivery)


class AvailableNowOnKafka(AvailableNow):
    """Structured Streaming over the same topic."""

    name = RIVAL_ON_KAFKA

    def __init__(self, topic: Topic) -> None:
        super().__init__(StateStore.HDFS, PLAIN)
        self._topic = topic

    def prepare(self, arena: Arena) -> None:
        self._topic.begin(arena)
        super().prepare(arena)

    def round(self, delivery: Delivery) -> float:
        self._topic.take(delivery)
        return super().round(delivery)

    def _source(self) -> DataFrame:
        options = {"kafka.bootstrap.servers": self._topic.servers, "subscribe": TOPIC, "startingOffsets": "earliest"}
        source = self._spark.readStream.format("kafka").options(**options)
        return source.option("kafka.isolation.level", "read_committed").load()


@contextmanager
def bench_broker(folder: Path) -> Iterator[str]:
    """Where a broker listens that lives as long as the bench."""
    with Broker(folder) as broker:
        yield broker.servers
