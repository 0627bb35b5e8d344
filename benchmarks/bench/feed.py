"""A topic of the product's own file log, filled one round at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from bench.contestant import Delivery
from tidemill.log.file import FileLog
from tidemill.log.producer import Producer, RoundRobin

TOPIC = "bench.requests"


_MOST_APPENDED = 1_000_000
"""So many records an append to a partition has at most."""


def partitions_for(size: int) -> int:
    """How many partitions a round of so many records needs: 2, or as many as appends."""
    return max(2, -(-size // _MOST_APPENDED))


class Records(Protocol):
    """What a feed writes."""

    def batch(self, index: int) -> pa.Table:
        """The records of batch `index` (from 0): binary columns `key` and `value`, in arrival order."""
        ...


class Feed:
    """Writes the next round's records; everybody reads the segments it wrote."""

    def __init__(self, root: Path, traffic: Records, *, topic: str = TOPIC, partitions: int = 2) -> None:
        self._log = FileLog(root)
        self._topic = self._log.create_topic(topic, partitions)
        self._producer = Producer(self._log, topic, partitioning=RoundRobin())
        self._traffic = traffic
        self._index = 0

    def deliver(self) -> Delivery:
        """Append one batch of the traffic and say where it is."""
        ranges = self._producer.append(self._traffic.batch(self._index))
        files = self._log.scan(self._topic.topic_id, ranges).files
        delivery = Delivery(index=self._index, records=sum(len(r) for r in ranges), files=files)
        self._index += 1
        return delivery
