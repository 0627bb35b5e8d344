"""The product over a topic of Kafka, on a broker of its own: the same records, planned, read and committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
from broker import Broker

from bench.contestant import Arena, Delivery
from bench.feed import TOPIC
from bench.report import ON_KAFKA
from bench.tidemill_batch import TidemillBatch
from tidemill.core.errors import UnknownTopic
from tidemill.log.kafka_access import Access
from tidemill.log.kafka_topics import KafkaTopics


class KafkaBatch(TidemillBatch):
    """A batch whose log is Kafka. A round's records are copied into the topic before its time begins."""

    name = ON_KAFKA

    def __init__(self, servers: str) -> None:
        super().__init__()
        self._servers = servers

    def prepare(self, arena: Arena) -> None:
        self._log = KafkaTopics(Access(servers=self._servers))
        with suppress(UnknownTopic):
            self._log.delete_topic(TOPIC)
            while self._log.topic(TOPIC):
                continue
        self._log.create_topic(TOPIC, 2)
        super().prepare(arena)

    def settings(self, arena: Arena) -> dict[str, Any]:
        # The markers of transactions have offsets, too: with the default, 1,000,000 records would be left to Spark.
        more = {"kafka": {"kafka": self._servers}, "driver_records": 2_000_000}
        return {**super().settings(arena), **more}

    def round(self, delivery: Delivery) -> float:
        for number, file in enumerate(delivery.files):
            rows = pq.read_table(file, columns=["timestamp", "key", "value", "headers"])
            self._log.append(TOPIC, number % 2, rows)
        return super().round(delivery)


@contextmanager
def bench_broker(folder: Path) -> Iterator[str]:
    """Where a broker listens that lives as long as the bench."""
    with Broker(folder) as broker:
        yield broker.servers
