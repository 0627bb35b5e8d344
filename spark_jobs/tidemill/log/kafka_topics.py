"""Everything that writes to a Kafka cluster: the `tidemill log` commands, sent rows, and offsets for lag tools."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from tidemill.core.errors import LogError, LogInputError, UnknownTopic
from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log import refusals
from tidemill.log.interface import Message, OutgoingBatch, Topic, Usage
from tidemill.log.kafka import LATEST, PATIENCE, KafkaLog
from tidemill.log.kafka_appending import Appender
from tidemill.log.kafka_sending import Sender
from tidemill.log.records import NewRecord, as_table
from tidemill.log.writable import LandedBatch, LandedWhole, ProducerBatch

_A_MOMENT = 5.0


class KafkaTopics(KafkaLog):
    """The topics of a cluster, with creating, appending and trimming."""

    def create_topic(self, name: str, partitions: int, *, force: bool = False) -> Topic:
        """Create an empty topic with the cluster's default replication."""
        refusals.check_new_topic(name, partitions, force=force)
        with self._asking(f"a new topic {name}"):
            try:
                self.admin.create_topics([NewTopic(name, partitions)])[name].result(PATIENCE)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
                raise refusals.topic_exists(self.topic(name), self._where) from None
        return self._made(name)

    def _made(self, name: str) -> Topic:
        """Wait until the brokers that are asked know the new topic, and return it."""
        patience = time.monotonic() + _A_MOMENT
        while True:
            try:
                return self.topic(name)
            except UnknownTopic:
                if time.monotonic() > patience:
                    raise
                time.sleep(0.02)

    def delete_topic(self, name: str) -> None:
        """Delete the topic and all its records."""
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
        """Append the records in one transaction and return their range, which may also hold records of others.

        Raises:
            LogInputError: `at` was given, but only Kafka decides where records go.
        """
        if at is not None:
            raise LogInputError(f"Kafka decides where records go in {topic}", fix="append without an offset")
        place = refusals.check_partition(self.topic(topic), partition)
        table = as_table(records)
        shares = [(partition, table)] if len(table) else []
        for found in self.append_at_once(topic, shares, batch=batch):
            return found
        end = self.bounds(topic)[partition].until_offset
        return OffsetRange(place, end, end)

    def append_at_once(
        self, topic: str, shares: Sequence[tuple[int, pa.Table]], *, batch: ProducerBatch | None = None
    ) -> tuple[OffsetRange, ...]:
        """Append to several partitions at once and return where the records are. One transaction."""
        found = self.topic(topic)
        if not shares:
            return ()
        with (
            self._asking(f"an append to {topic}"),
            self._appender(found, batch.producer_id if batch else None) as appender,
        ):
            ranges = appender.append(shares, batch)
        for written in ranges:
            self._await(written.topic_partition, written.until_offset)
        return ranges

    def last_batch(self, topic: str, producer_id: str) -> LandedWhole | None:
        """Return the producer's newest batch in the topic, or None."""
        found = self.topic(topic)
        with self._asking(f"what is in {topic}"), self._appender(found, producer_id) as appender:
            return appender.newest()

    @contextmanager
    def _appender(self, topic: Topic, producer_id: str | None) -> Iterator[Appender]:
        appender = Appender(self.access, topic, producer_id)
        try:
            yield appender
        finally:
            appender.close()

    def _await(self, place: TopicPartition, end: int) -> None:
        """Wait a few seconds until readers can see the records.

        The transaction is committed, but its marker reaches the partition some milliseconds later. Other open
        transactions may hold the records back longer.
        """
        patience = time.monotonic() + _A_MOMENT
        # Even if the cluster does not answer now, the records are written.
        with suppress(LogError):
            while self._offsets(place.topic, [place.partition], LATEST)[place.partition] < end:
                if time.monotonic() > patience:
                    return
                time.sleep(0.02)

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """Return the share of a producer's newest batch in this partition. Older batches are not known."""
        place = refusals.check_partition(self.topic(topic), partition)
        newest = self.last_batch(topic, producer_id)
        if newest is None or (sequence is not None and sequence != newest.batch.sequence):
            return None
        share = next((r for r in newest.ranges if r.topic_partition == place), None)
        return LandedBatch(batch=newest.batch, range=share) if share is not None else None

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """Delete the records below `before_offset` and return the range that is left."""
        place = refusals.check_partition(self.topic(topic), partition)
        refusals.check_trim(self.bounds(topic)[partition], before_offset)
        with self._asking(f"a shorter {place}"):
            for done in self.admin.delete_records([Place(topic, partition, before_offset)]).values():
                done.result(PATIENCE)
        return self.bounds(topic)[partition]

    def usage(self, name: str) -> Mapping[int, Usage]:
        """Return unknown sizes: Kafka does not tell them to a client."""
        return {number: Usage(segments=None, bytes=None) for number in range(self.topic(name).partitions)}

    def send(self, outgoing: OutgoingBatch, messages: Iterable[Message]) -> bool:
        """Send the messages once. False if the topic has them already."""
        self.topic(outgoing.topic)
        return Sender(self.access, outgoing).send(messages)

    def tell_position(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit the offsets of consumer group `tidemill.READER`, for lag tools. Tidemill never reads them back."""
        places = [Place(tp.topic, tp.partition, offset) for tp, offset in offsets.items()]
        group = ConsumerGroupTopicPartitions(f"tidemill.{reader}", places)
        with self._asking(f"the offsets of group tidemill.{reader}"):
            for done in self.admin.alter_consumer_group_offsets([group]).values():
                done.result(PATIENCE)
