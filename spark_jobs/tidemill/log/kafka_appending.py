"""Records for several partitions as one transaction of Kafka, each batch of a producer once.

As for rows that are sent (`kafka_sending`), the transaction also commits a number: one more than that of the batch, as
the offset of a group that nobody reads by, with what else is to be known of the batch as its metadata. Brokers forget
it some days after the last append (`offsets.retention.minutes`, 7 days by default).
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
"""Characters; brokers take 4,096 by default."""


class _Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the offset of the group says of the newest batch; ranges are left out where they are too many."""

    first_slot: int
    next_slot: int
    records: int
    digest: str | None = None
    ranges: list[tuple[int, int, int]] = []


class Appender:
    """Appends to one topic, for a producer or for nobody."""

    def __init__(self, access: Access, topic: Topic, producer_id: str | None) -> None:
        self._topic, self._producer_id = topic, producer_id
        name = f"tidemill.log.{topic.name}.{producer_id or uuid.uuid4()}"
        client: dict[str, Any] = {**access.client(), "log_level": 0}
        self._producer = Producer(client | {"transactional.id": name, "linger.ms": 20})
        self._offsets: dict[int, list[int]] = {}
        self._group = f"{name}.{topic.topic_id}.batches"
        self._fence = Consumer(client | {"group.id": self._group, "enable.auto.commit": False})

    def close(self) -> None:
        """Leave the group."""
        self._fence.close()

    def newest(self) -> LandedWhole | None:
        """The producer's newest batch in the topic; an earlier process's open transaction is given up first."""
        patiently(lambda: self._producer.init_transactions(PATIENCE))
        return self._newest() if self._producer_id is not None else None

    def append(self, shares: Sequence[tuple[int, pa.Table]], batch: ProducerBatch | None) -> tuple[OffsetRange, ...]:
        """See `AppendsAtOnce.append_at_once`."""
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
        """The batch's number lands with its records."""
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
        """Nobody waits for a transaction that can be aborted; whether any other was committed cannot be told.

        Raises:
            CommitUnknown: it cannot be told.
            KafkaException: nothing was written.
        """
        said = error.args[0]
        if said.txn_requires_abort():
            self._producer.abort_transaction(PATIENCE)
            raise error
        if said.code() in FENCED:
            raise error
        raise CommitUnknown(
            f"{self._topic.name}: the records of one append are there, or none of them: Kafka did not say which: "
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
