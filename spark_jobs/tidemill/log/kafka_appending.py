"""Appends records to several partitions in one transaction of Kafka, each batch of a producer once.

As with rows that are sent (`kafka_sending`), the transaction also commits an offset of a consumer group that nobody
reads with. The offset is the batch's number plus one, and its metadata is what else must be known of the batch. Brokers
forget it some days after the last append (`offsets.retention.minutes`, 7 days by default).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, NoReturn

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from tidemill.core.errors import CommitUnknown, Fenced, LogUnreachable
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log import refusals
from tidemill.log.interface import Topic
from tidemill.log.kafka import PATIENCE
from tidemill.log.kafka_access import Access
from tidemill.log.kafka_sending import FENCED, enqueue, patiently
from tidemill.log.records import NewRecord, as_new_records
from tidemill.log.writable import LandedWhole, ProducerBatch

_A_LONG_WHILE = 60.0
_MOST_METADATA = 3_500
"""Characters of metadata. Brokers accept 4,096 by default."""


class _Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of the group's offset: describes the newest batch. `ranges` is left out if it would be too long."""

    first_slot: int
    next_slot: int
    records: int
    digest: str | None = None
    ranges: list[tuple[int, int, int]] = []


class Appender:
    """Appends to one topic. Without a producer id, appends are not idempotent."""

    def __init__(self, access: Access, topic: Topic, producer_id: str | None) -> None:
        self._topic, self._producer_id = topic, producer_id
        name = f"tidemill.log.{topic.name}.{producer_id or uuid.uuid4()}"
        client: dict[str, Any] = {**access.client(), "log_level": 0}
        self._producer = Producer(client | {"transactional.id": name, "linger.ms": 20})
        self._offsets: dict[int, list[int]] = {}
        self._group = f"{name}.{topic.topic_id}.batches"
        self._fence = Consumer(client | {"group.id": self._group, "enable.auto.commit": False})

    def close(self) -> None:
        """Close the consumer that commits the numbers."""
        self._fence.close()

    def newest(self) -> LandedWhole | None:
        """Return the producer's newest batch in the topic, after ending what an earlier process left open."""
        patiently(lambda: self._producer.init_transactions(PATIENCE))
        return self._newest() if self._producer_id is not None else None

    def append(self, shares: Sequence[tuple[int, pa.Table]], batch: ProducerBatch | None) -> tuple[OffsetRange, ...]:
        """Append the shares in one transaction, unless the batch is there already. Returns where the records are."""
        try:
            newest = self.newest()
            if batch is not None and newest is not None and newest.batch.sequence >= batch.sequence:
                return self._repeated(newest, batch)
            return self._write(shares, batch)
        except KafkaException as error:
            if error.args[0].code() in FENCED:
                raise Fenced(
                    f"another process appends to {self._topic.name} for producer {self._producer_id}",
                    fix="let one process at a time append an input",
                ) from None
            raise

    def _newest(self) -> LandedWhole | None:
        [found] = patiently(lambda: self._fence.committed([Place(self._topic.name, 0)], timeout=PATIENCE))
        if found.error is not None:
            raise KafkaException(found.error)
        if found.offset < 1 or self._producer_id is None:
            return None
        known = msgspec.json.decode(found.metadata or "", type=_Known)
        batch = ProducerBatch(
            producer_id=self._producer_id,
            sequence=found.offset - 1,
            first_slot=known.first_slot,
            next_slot=known.next_slot,
            records=known.records,
            digest=known.digest,
        )
        ranges = (OffsetRange(TopicPartition(self._topic.name, p), begin, end) for p, begin, end in known.ranges)
        return LandedWhole(batch=batch, ranges=tuple(ranges))

    def _repeated(self, newest: LandedWhole, batch: ProducerBatch) -> tuple[OffsetRange, ...]:
        place = TopicPartition(self._topic.name, 0)
        if newest.batch.sequence > batch.sequence:
            raise refusals.outdated(place, batch, newest.batch.sequence)
        refusals.same_batch(self._topic, newest, batch)
        return newest.ranges

    def _write(self, shares: Sequence[tuple[int, pa.Table]], batch: ProducerBatch | None) -> tuple[OffsetRange, ...]:
        count = sum(len(share) for _, share in shares)
        self._producer.begin_transaction()
        for partition, share in shares:
            for record in as_new_records(share):
                self._produce(partition, record)
        try:
            self._producer.flush(_A_LONG_WHILE)
            ranges = self._ranges()
            if batch is not None:
                self._keep(batch, ranges)
            self._producer.commit_transaction(_A_LONG_WHILE)
        except KafkaException as error:
            self._given_up(error)
        if sum(map(len, self._offsets.values())) != count:
            raise LogUnreachable(f"{self._topic.name}: not all of {count} records were acknowledged")
        return ranges

    def _keep(self, batch: ProducerBatch, ranges: Sequence[OffsetRange]) -> None:
        """Add the batch's number to the transaction, so that both are committed or neither."""
        places = [(r.topic_partition.partition, r.from_offset, r.until_offset) for r in ranges]
        known = _Known(
            first_slot=batch.first_slot,
            next_slot=batch.next_slot,
            records=batch.records,
            digest=batch.digest,
            ranges=places,
        )
        text = msgspec.json.encode(known).decode()
        if len(text) > _MOST_METADATA:
            text = msgspec.json.encode(msgspec.structs.replace(known, ranges=[])).decode()
        number = Place(self._topic.name, 0, batch.sequence + 1, text)
        reader = self._fence.consumer_group_metadata()
        patiently(lambda: self._producer.send_offsets_to_transaction([number], reader, PATIENCE))

    def _given_up(self, error: KafkaException) -> NoReturn:
        """Abort the transaction if that is possible. If it is not, nobody can tell whether it was committed.

        Raises:
            CommitUnknown: the records may or may not have been written.
            KafkaException: nothing was written.
        """
        said = error.args[0]
        if said.txn_requires_abort():
            self._producer.abort_transaction(PATIENCE)
            raise error
        if said.code() in FENCED:
            raise error
        raise CommitUnknown(
            f"{self._topic.name}: either all records of this append are there or none; Kafka did not answer which: "
            f"{said.str()}",
            fix="" if self._producer_id else "look at the end of the partitions before you append them again",
        ) from None

    def _ranges(self) -> tuple[OffsetRange, ...]:
        return tuple(
            OffsetRange(TopicPartition(self._topic.name, partition), min(offsets), max(offsets) + 1)
            for partition, offsets in sorted(self._offsets.items())
        )

    def _produce(self, partition: int, record: NewRecord) -> None:
        more: dict[str, Any] = (
            {} if record.timestamp is None else {"timestamp": int(record.timestamp.timestamp() * 1000)}
        )
        enqueue(
            self._producer,
            self._topic.name,
            value=record.value,
            key=record.key,
            partition=partition,
            headers=list(record.headers),
            on_delivery=self._delivered,
            **more,
        )

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self._offsets.setdefault(message.partition(), []).append(message.offset())
