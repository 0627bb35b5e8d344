"""What `tidemill log` does to topics of Kafka, and what lag tools are told: everything that writes to a cluster."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from tidemill.core.errors import CommitUnknown, LogError, LogInputError, LogUnreachable, UnknownTopic
from tidemill.core.offsets import OffsetRange, TopicPartition
from tidemill.log import checks
from tidemill.log.kafka import LATEST, PATIENCE, KafkaLog
from tidemill.log.kafka_sending import Sender, enqueue
from tidemill.log.protocol import Message, Parcel, Topic, Usage
from tidemill.log.records import NewRecord, as_new_records, as_table
from tidemill.log.writable import LandedBatch, ProducerBatch

_A_LONG_WHILE = 60.0
_A_MOMENT = 5.0


class KafkaTopics(KafkaLog):
    """A cluster's topics, to be made, filled and trimmed."""

    def create_topic(self, name: str, partitions: int) -> Topic:
        """See `WritableLog.create_topic`; replicated as the cluster does by default."""
        checks.check_new_topic(name, partitions)
        with self._asking(f"a new topic {name}"):
            try:
                self.admin.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                raise checks.topic_exists(self.topic(name), self._where) from None
        return self._made(name)

    def _made(self, name: str) -> Topic:
        """The new topic, once the brokers that are asked have heard of it."""
        patience = time.monotonic() + _A_MOMENT
        while True:
            try:
                return self.topic(name)
            except UnknownTopic:
                if time.monotonic() > patience:
                    raise
                time.sleep(0.02)

    def delete_topic(self, name: str) -> None:
        """See `WritableLog.delete_topic`."""
        self.topic(name)
        with self._asking(f"the end of topic {name}"):
            self.admin.delete_topics([name])[name].result(PATIENCE)

    def append(
        self,
        topic: str,
        partition: int,
        records: pa.Table | Iterable[NewRecord],
        *,
        at: int | None = None,
        batch: ProducerBatch | None = None,
    ) -> OffsetRange:
        """See `WritableLog.append`: one transaction. The range may hold records of others, too.

        Raises:
            LogInputError: Kafka is asked for what only a file log keeps: a place, or the identity of a batch.
        """
        if at is not None or batch is not None:
            raise LogInputError(
                f"Kafka decides where records go in {topic}, and keeps no producer's batches",
                fix="append without a producer id",
            )
        place = checks.check_partition(self.topic(topic), partition)
        rows = as_new_records(as_table(records))
        if not rows:
            end = self.bounds(topic)[partition].until_offset
            return OffsetRange(place, end, end)
        with self._asking(f"an append to {place}"):
            offsets = _Transaction(self.access.client()).write(place, rows)
        self._await(place, max(offsets) + 1)
        return OffsetRange(place, min(offsets), max(offsets) + 1)

    def _await(self, place: TopicPartition, end: int) -> None:
        """Until readers are given the records, or others' open transactions keep them back for a while.

        The transaction is committed, and its marker is written to the partition some milliseconds later.
        """
        patience = time.monotonic() + _A_MOMENT
        # Whether the cluster answers or not, the records are there.
        with suppress(LogError):
            while self._offsets(place.topic, [place.partition], LATEST)[place.partition] < end:
                if time.monotonic() > patience:
                    return
                time.sleep(0.02)

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """See `WritableLog.landed`: Kafka keeps no such thing.

        Raises:
            LogInputError: always.
        """
        raise LogInputError(
            f"{topic}: a topic of Kafka does not remember the batches of producer {producer_id}",
            fix="append without a producer id",
        )

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """See `WritableLog.trim`."""
        place = checks.check_partition(self.topic(topic), partition)
        checks.check_trim(self.bounds(topic)[partition], before_offset)
        with self._asking(f"a shorter {place}"):
            for done in self.admin.delete_records([Place(topic, partition, before_offset)]).values():
                done.result(PATIENCE)
        return self.bounds(topic)[partition]

    def usage(self, name: str) -> Mapping[int, Usage]:
        """See `WritableLog.usage`: a client is not told."""
        return {number: Usage(segments=None, bytes=None) for number in range(self.topic(name).partitions)}

    def send(self, parcel: Parcel, messages: Iterable[Message]) -> bool:
        """See `Sends.send`."""
        self.topic(parcel.topic)
        return Sender(self.access, parcel).send(messages)

    def tell_position(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        """See `TellsPosition`: the offsets of consumer group `tidemill.READER`, which nobody reads back."""
        places = [Place(tp.topic, tp.partition, offset) for tp, offset in offsets.items()]
        group = ConsumerGroupTopicPartitions(f"tidemill.{reader}", places)
        with self._asking(f"the offsets of group tidemill.{reader}"):
            for done in self.admin.alter_consumer_group_offsets([group]).values():
                done.result(PATIENCE)


class _Transaction:
    """All records or none."""

    def __init__(self, client: Mapping[str, str]) -> None:
        settings: dict[str, Any] = {
            **client,
            "transactional.id": f"tidemill.log.{uuid.uuid4()}",
            "log_level": 0,
            "linger.ms": 20,
        }
        self._producer = Producer(settings)
        self._offsets: list[int] = []

    def write(self, place: TopicPartition, records: list[NewRecord]) -> list[int]:
        """Their offsets."""
        self._producer.init_transactions(PATIENCE)
        self._producer.begin_transaction()
        for record in records:
            self._produce(place, record)
        try:
            self._producer.commit_transaction(_A_LONG_WHILE)
        except KafkaException as error:
            self._given_up(place, error)
        if len(self._offsets) != len(records):
            raise LogUnreachable(f"{place}: {len(self._offsets)} of {len(records)} records were acknowledged")
        return self._offsets

    def _given_up(self, place: TopicPartition, error: KafkaException) -> NoReturn:
        """Nobody waits for a transaction that can be aborted; whether any other was committed cannot be told.

        Raises:
            CommitUnknown: it cannot be told.
            KafkaException: nothing was written.
        """
        if error.args[0].txn_requires_abort():
            self._producer.abort_transaction(PATIENCE)
            raise error
        raise CommitUnknown(
            f"{place}: the records of one append are there, or none of them: Kafka did not say which: "
            f"{error.args[0].str()}",
            fix="look at the end of the partition before you append them again",
        ) from None

    def _produce(self, place: TopicPartition, record: NewRecord) -> None:
        more: dict[str, Any] = (
            {} if record.timestamp is None else {"timestamp": int(record.timestamp.timestamp() * 1000)}
        )
        enqueue(
            self._producer,
            place.topic,
            value=record.value,
            key=record.key,
            partition=place.partition,
            headers=list(record.headers),
            on_delivery=self._delivered,
            **more,
        )

    def _delivered(self, error: KafkaError | None, message: Any) -> None:
        if error is None:
            self._offsets.append(message.offset())
