"""A log in memory, for tests of pipelines and of Tidemill itself."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.log.offsets import OffsetRange, TopicPartition, merge_ranges
from tidemill.core.log.scan import MemoryScan, Record
from tidemill.log import refusals
from tidemill.log.interface import Topic, Usage
from tidemill.log.reading import first_at
from tidemill.log.records import NewRecord, as_new_records, as_table, utc_now
from tidemill.log.writable import LandedBatch, ProducerBatch

_WHERE = "the memory log"


@dataclass(slots=True)
class _Partition:
    """The records from offset `start` on, and the shares of all producers in the order they were written."""

    place: TopicPartition
    start: int = 0
    records: list[Record] = field(default_factory=list)
    landed: list[LandedBatch] = field(default_factory=list)

    @property
    def held(self) -> OffsetRange:
        return OffsetRange(self.place, self.start, self.start + len(self.records))

    def shares(self, producer_id: str) -> list[LandedBatch]:
        return [share for share in self.landed if share.batch.producer_id == producer_id]


class MemoryLog:
    """A `WritableLog` that lives as long as the object; threads may share it."""

    def __init__(
        self,
        *,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._lock = threading.RLock()
        self._topics: dict[str, tuple[Topic, list[_Partition]]] = {}

    def names(self) -> Sequence[str]:
        """Return the names of all topics, sorted."""
        return [topic.name for topic in self.topics()]

    def topics(self) -> Sequence[Topic]:
        """Return all topics, sorted by name."""
        with self._lock:
            return [self._topics[name][0] for name in sorted(self._topics)]

    def topic(self, name: str) -> Topic:
        """Return the topic called `name`, or raise `UnknownTopic`."""
        return self._of(name)[0]

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """Return for each partition the range from its first offset still held to its next offset."""
        with self._lock:
            return {part.place.partition: part.held for part in self._of(name)[1]}

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """Return the first offset whose record has `moment` or a later time, or the end."""
        return first_at(self, name, partition, moment)

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> MemoryScan:
        """Check these ranges of one topic and return how to read them."""
        if not ranges:
            return MemoryScan(records=(), ranges=())
        with self._lock:
            topic, partitions = self._of(ranges[0].topic_partition.topic)
            refusals.check_scan(topic, topic_id, ranges)
            records: list[Record] = []
            for item in merge_ranges(ranges):
                part = partitions[item.topic_partition.partition]
                refusals.check_held(item, part.held)
                records += part.records[item.from_offset - part.start : item.until_offset - part.start]
            return MemoryScan(records=tuple(records), ranges=tuple(ranges))

    def create_topic(self, name: str, partitions: int, *, force: bool = False) -> Topic:
        """Create an empty topic, or raise `LogInputError` if the name is taken or not allowed."""
        refusals.check_new_topic(name, partitions, force=force)
        with self._lock:
            if name in self._topics:
                raise refusals.topic_exists(self._topics[name][0], _WHERE)
            topic = Topic(
                name=name, topic_id=self._new_id(), partitions=partitions, layout="memory", created=self._clock()
            )
            self._topics[name] = topic, [_Partition(TopicPartition(name, n)) for n in range(partitions)]
            return topic

    def delete_topic(self, name: str) -> None:
        """Delete the topic and all its records."""
        with self._lock:
            self._of(name)
            del self._topics[name]

    def append(
        self,
        topic: str,
        partition: int,
        records: pa.Table | Iterable[NewRecord],
        *,
        at: int | None = None,
        batch: ProducerBatch | None = None,
    ) -> OffsetRange:
        """Append the records to the partition, all or none, and return their offsets."""
        table = as_table(records)
        with self._lock:
            part = self._partition(topic, partition)
            refusals.check_size(part.place, table.num_rows)
            rows = as_new_records(table)
            if known := batch and self._known(part, batch, len(rows)):
                return known
            held = part.held
            refusals.check_position(held, at)
            written = OffsetRange(part.place, held.until_offset, held.until_offset + len(rows))
            part.records += self._numbered(written, rows)
            if batch and rows:
                part.landed.append(LandedBatch(batch=batch, range=written))
            return written

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """Return the share of a producer's batch in this partition, or None if it is not known."""
        with self._lock:
            shares = self._partition(topic, partition).shares(producer_id)
            if sequence is None:
                return shares[-1] if shares else None
            return next((share for share in shares if share.batch.sequence == sequence), None)

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """Delete the records below `before_offset` and return the range that is left."""
        with self._lock:
            part = self._partition(topic, partition)
            refusals.check_trim(part.held, before_offset)
            start = max(part.start, before_offset)
            del part.records[: start - part.start]
            part.start = start
            return part.held

    def usage(self, name: str) -> Mapping[int, Usage]:
        """Return the size of the keys and values of each partition. There are no segments."""
        with self._lock:
            return {
                part.place.partition: Usage(
                    segments=0, bytes=sum(len(r.key or b"") + len(r.value or b"") for r in part.records)
                )
                for part in self._of(name)[1]
            }

    def _of(self, name: str) -> tuple[Topic, list[_Partition]]:
        with self._lock:
            if name not in self._topics:
                raise refusals.unknown_topic(name, _WHERE, sorted(self._topics))
            return self._topics[name]

    def _partition(self, name: str, partition: int) -> _Partition:
        topic, partitions = self._of(name)
        refusals.check_partition(topic, partition)
        return partitions[partition]

    def _known(self, part: _Partition, batch: ProducerBatch, count: int) -> OffsetRange | None:
        shares = part.shares(batch.producer_id)
        for share in shares:
            if share.batch.sequence == batch.sequence:
                return refusals.repeated(share, batch, count)
        if shares and shares[-1].batch.sequence > batch.sequence:
            raise refusals.outdated(part.place, batch, shares[-1].batch.sequence)
        return None

    def _numbered(self, written: OffsetRange, rows: Sequence[NewRecord]) -> list[Record]:
        now = self._clock()
        return [
            Record(
                topic=written.topic_partition.topic,
                partition=written.topic_partition.partition,
                offset=written.from_offset + index,
                timestamp=row.timestamp or now,
                key=row.key,
                value=row.value,
                headers=row.headers,
            )
            for index, row in enumerate(rows)
        ]
