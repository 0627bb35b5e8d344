"""The interfaces of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """The identity and size of a topic. A topic that is deleted and created again gets another `topic_id`.

    `layout` names the kind of log that holds the topic. `created` is the time of its creation, if the log knows it.
    """

    name: str
    topic_id: str
    partitions: int
    layout: str = ""
    created: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a partition takes in its store; None for what the store does not tell."""

    segments: int | None
    bytes: int | None


@runtime_checkable
class Remembers(Protocol):
    """A log that need not be asked twice for one batch."""

    def remembering(self) -> Log:
        """Return the same log with a memory of its own: it asks once for what one batch needs several times."""
        ...


def asked_once(log: Log) -> Log:
    """The log for one batch: with a memory, if it can remember."""
    return log.remembering() if isinstance(log, Remembers) else log


@runtime_checkable
class Continues(Protocol):
    """A log that finds its end faster for a reader who says how far it has come."""

    def bounds_since(self, name: str, offsets: Mapping[int, int]) -> Mapping[int, OffsetRange]:
        """Return what `Log.bounds` does, to a reader whose next offsets these are, by partition.

        A range may begin at the reader's offset although the log holds some before it.

        Raises:
            UnknownTopic: the topic does not exist.
        """
        ...


@runtime_checkable
class HoldsBack(Protocol):
    """A log with transactions: a partition ends where its first open transaction begins."""

    def waiting(self, name: str) -> Mapping[int, int]:
        """How many offsets of each partition wait for open transactions to end. Partitions without any are left out.

        Raises:
            UnknownTopic: the topic does not exist.
        """
        ...


@runtime_checkable
class TellsPosition(Protocol):
    """A log that can show others how far a reader has read it."""

    def tell_position(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Publish the next offsets of a reader, for tools that show its lag. Tidemill never reads them back.

        Raises:
            LogUnreachable: the offsets could not be published.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A row to send. `value` is a JSON object of its columns, `key` a JSON object of its key columns.

    No value says that the row with this key was removed.
    """

    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingBatch:
    """What a batch sends to a topic. `sender` names the pipeline and the table; batches are numbered per sender.

    If `once` is False, a retry may send the rows again, and readers may see only some of them meanwhile.
    """

    topic: str
    sender: str
    batch_id: int
    plan_hash: str
    at: datetime
    headers: Mapping[str, str]
    once: bool = True


@runtime_checkable
class Sends(Protocol):
    """A log that accepts the rows of a batch all at once and knows the last batch of each sender."""

    def send(self, outgoing: OutgoingBatch, messages: Iterable[Message]) -> bool:
        """Send the messages, unless the topic has them already. Returns whether they were sent now.

        Readers of committed records see all of them or none.

        Raises:
            Fenced: a newer batch of the sender was sent, or another plan of this batch.
            UnknownTopic: the topic does not exist.
            LogUnreachable: the messages may or may not have been sent, or another process sends now. A retry finds out.
        """
        ...


class Log(Protocol):
    """Topics of ordered, append-only, immutable partitions. Offsets begin at 0 and have no gaps, except in Kafka.

    Every answer describes the moment of the call. A log needs no Spark, and it does not store the position of a reader:
    positions are in the ledger.
    """

    def names(self) -> Sequence[str]:
        """Return the names of all topics, sorted."""
        ...

    def topics(self) -> Sequence[Topic]:
        """Return all topics, sorted by name."""
        ...

    def topic(self, name: str) -> Topic:
        """Return the topic called `name`.

        Raises:
            UnknownTopic: the topic does not exist; the error lists those that do.
        """
        ...

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """Return for each partition the range from its first offset still held to its next offset.

        Raises:
            UnknownTopic: the topic does not exist.
            TooManyPartitions: the topic has more partitions than a batch can ask.
        """
        ...

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """Return the first offset of a partition whose record has `moment` or a later time, or the end.

        Kafka's `offsetsForTimes` does the same.

        Raises:
            UnknownTopic: the topic does not exist.
            SegmentDamaged: a file cannot be read.
        """
        ...

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> Scan:
        """Check these ranges of one topic and return how to read exactly these offsets. Ranges may be empty.

        Raises:
            TopicRecreated: the topic no longer has the id `topic_id`.
            OffsetsLost: some offsets are gone (retention), not written yet, or missing in between. The error names
                topic, partition and the missing offsets.
            SegmentDamaged: a file that should hold some of them cannot be read.
        """
        ...

    def usage(self, name: str) -> Mapping[int, Usage]:
        """Return how much each partition takes in the store.

        Raises:
            UnknownTopic: the topic does not exist.
        """
        ...
