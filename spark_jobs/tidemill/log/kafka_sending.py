"""Sends the rows of a batch in one transaction of Kafka, each batch once.

The transaction also commits the batch's number, as the offset of a consumer group that nobody reads with. It is
committed together with the records or not at all, so a retry can find out which it was. The transactional id belongs to
the sender: the newest process with this id ends open transactions of older ones, as the newest claim fences older ones
in the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Place

from tidemill.core.errors import Fenced, LogInputError, LogUnreachable
from tidemill.core.protocol.failpoints import LostAnswer, answered
from tidemill.core.time.times import micros
from tidemill.log.interface import Message, OutgoingBatch
from tidemill.log.kafka import PATIENCE
from tidemill.log.kafka_access import Access

_OPEN_FOR = 900.0
"""Transaction timeout in seconds. If the sender dies and never returns, Kafka aborts the transaction after this time.

It is the longest timeout that brokers allow by default.
"""

_PRODUCER: dict[str, Any] = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "compression.type": "lz4",
    # The topic's own limit for the size of a message counts, not the client's.
    "message.max.bytes": 100_000_000,
    # Choose the partition that Kafka's Java client would choose.
    "partitioner": "murmur2_random",
}
_A_WHILE = 60.0

FENCED = (KafkaError._FATAL, KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
"""Errors with which Kafka tells a producer that a newer one with the same transactional id has started."""

_MOVING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Errors that a broker answers with while it starts or takes over from another one."""

T = TypeVar("T")


class Sender:
    """Sends the rows of one batch."""

    def __init__(self, access: Access, outgoing: OutgoingBatch) -> None:
        self._outgoing, self._where = outgoing, f"Kafka at {access.servers}"
        name = f"tidemill.{outgoing.sender}.{outgoing.topic}"
        client: dict[str, Any] = {**access.client(), "log_level": 0}
        transactional = {"transactional.id": name, "transaction.timeout.ms": int(_OPEN_FOR * 1000)}
        self._producer = Producer(client | _PRODUCER | (transactional if outgoing.once else {}))
        self._group = f"{name}.batches"
        self._fence = Consumer(client | {"group.id": self._group, "enable.auto.commit": False})
        self._failed: KafkaError | None = None

    def send(self, messages: Iterable[Message]) -> bool:
        """Send the messages once. False if the topic has them already."""
        try:
            if not self._outgoing.once:
                self._deliver(messages)
                return True
            # Aborts the open transaction of an earlier attempt, or waits until its commit is complete.
            patiently(lambda: self._producer.init_transactions(PATIENCE))
            if self._is_there():
                return False
            self._send(messages)
            answered()
        except KafkaException as error:
            raise self._explained(self._failed or error.args[0]) from None
        except LostAnswer as error:
            raise self._unknown(str(error)) from None
        finally:
            self._fence.close()
        return True

    def _is_there(self) -> bool:
        """Whether this batch is the newest one that was sent.

        Raises:
            Fenced: a newer batch was sent, or another plan of this batch.
        """
        outgoing = self._outgoing
        [found] = patiently(lambda: self._fence.committed([Place(outgoing.topic, 0)], timeout=PATIENCE))
        if found.error is not None:
            raise KafkaException(found.error)
        if found.offset < outgoing.batch_id:
            return False
        if found.offset == outgoing.batch_id and found.metadata == outgoing.plan_hash:
            return True
        raise Fenced(
            f"{outgoing.sender}: batch {found.offset} was sent to {outgoing.topic} by plan {str(found.metadata)[:12]}, "
            f"and batch {outgoing.batch_id} by plan {outgoing.plan_hash[:12]} must not follow it (if the lake is new, "
            f"name another topic, or delete the consumer group {self._group})"
        )

    def _send(self, messages: Iterable[Message]) -> None:
        outgoing = self._outgoing
        fence = Place(outgoing.topic, 0, outgoing.batch_id, outgoing.plan_hash)
        self._producer.begin_transaction()
        try:
            for message in messages:
                self._produce(message)
            reader = self._fence.consumer_group_metadata()
            patiently(lambda: self._producer.send_offsets_to_transaction([fence], reader, PATIENCE))
            patiently(lambda: self._producer.commit_transaction(PATIENCE))
        except BaseException:
            # Aborting frees readers before the next attempt. If the commit is already under way, the abort fails
            # harmlessly.
            with suppress(KafkaException):
                self._producer.abort_transaction(PATIENCE)
            raise

    def _deliver(self, messages: Iterable[Message]) -> None:
        """Send without a transaction: readers see messages at once, and a retry sends them again."""
        for message in messages:
            self._produce(message)
        if self._producer.flush(_A_WHILE) or self._failed:
            raise KafkaException(self._failed or KafkaError(KafkaError._MSG_TIMED_OUT))

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        # Later errors only follow from the first one.
        self._failed = self._failed or error

    def _produce(self, message: Message) -> None:
        outgoing = self._outgoing
        at = micros(outgoing.at) // 1000
        headers: list[tuple[str, str | bytes | None]] = [*outgoing.headers.items()]
        enqueue(
            self._producer,
            outgoing.topic,
            lambda: self._failed,
            value=message.value,
            key=message.key,
            timestamp=at,
            headers=headers,
            on_delivery=self._delivered,
        )

    def _explained(self, error: KafkaError) -> Exception:
        outgoing = self._outgoing
        if error.code() in FENCED:
            return self._unknown("somebody else began to send, or it took longer than Kafka allows")
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return LogInputError(
                f"batch {outgoing.batch_id} of {outgoing.sender} has a row that is larger than {outgoing.topic} allows",
                fix="raise max.message.bytes of the topic, then run again; or publish without topic=",
            )
        return self._unknown(error.str())

    def _unknown(self, why: str) -> LogUnreachable:
        outgoing = self._outgoing
        return LogUnreachable(
            f"{self._where}: batch {outgoing.batch_id} of {outgoing.sender} may not be in {outgoing.topic}: {why}",
            fix="nothing is doubled: the next run finds out whether it landed",
        )


def enqueue(
    producer: Producer, topic: str, failed: Callable[[], KafkaError | None] = lambda: None, **message: Any
) -> None:
    """Hand a message to the client, and wait while the client's queue is full.

    Raises:
        KafkaException: the queue is full and another message has failed.
    """
    while True:
        try:
            producer.produce(topic, **message)
        except BufferError:
            producer.poll(0.1)
            error = failed()
            if error is not None:
                raise KafkaException(error) from None
            continue
        producer.poll(0)
        return


def patiently(call: Callable[[], T]) -> T:
    """Return the result of the call. Repeat it for up to a minute while its error may be temporary."""
    end = time.monotonic() + _A_WHILE
    while True:
        try:
            return call()
        except KafkaException as error:
            said = error.args[0]
            if not (said.retriable() or said.code() in _MOVING) or time.monotonic() > end:
                raise
            time.sleep(0.1)
