"""What Tidemill asks of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.core.log.scan import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic's identity and size. A topic that is deleted and created again has another `topic_id`.

    `layout` says whose files or brokers hold it, `created` when it was made, where the log knows that.
    """

    name: str
    topic_id: str
    partitions: int
    layout: str = ""
    created: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a partition takes in its store; None where the store does not say."""

    segments: int | None
    bytes: int | None


@runtime_checkable
class HoldsBack(Protocol):
    """A log whose partitions end where the first transaction begins that is still open."""

    def waiting(self, name: str) -> Mapping[int, int]:
        """How many offsets of each partition wait for open transactions to end; only partitions where some do.

        Raises:
            UnknownTopic: there is no such topic.
        """
        ...


@runtime_checkable
class TellsPosition(Protocol):
    """A log that can tell others how far somebody has read it."""

    def tell_position(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        """The next offsets of a reader, for tools that show its lag. Tidemill never reads them back.

        Raises:
            LogUnreachable: they could not be told.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A row that is sent: `value` is a JSON object with its columns, `key` one with those that say which row it is."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingBatch:
    """What a batch sends to a topic. `sender` names pipeline and table, and counts its batches.

    Unless it must arrive `once`, a second try may send it again, and readers may see a part of it meanwhile.
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
    """A log that takes the rows of a batch all at once, and knows which batch of a sender was the last."""

    def send(self, outgoing: OutgoingBatch, messages: Iterable[Message]) -> bool:
        """Send the messages, unless the topic has them already; whether they were sent now.

        Readers of committed records see all of them or none.

        Raises:
            Fenced: a newer batch of the sender was sent, or another plan of this one.
            UnknownTopic: there is no such topic.
            LogUnreachable: it is not known whether they were sent, or somebody else sends now; the next try finds out.
        """
        ...


class Log(Protocol):
    """Topics of ordered, append-only, immutable partitions; offsets begin at 0 and are dense, but for Kafka's.

    Every answer is about the moment of the call. Nothing here needs Spark, and nothing here keeps a
    reader's position: positions live in the ledger.
    """

    def names(self) -> Sequence[str]:
        """The names of all topics, sorted."""
        ...

    def topics(self) -> Sequence[Topic]:
        """All topics, by name."""
        ...

    def topic(self, name: str) -> Topic:
        """The topic called `name`.

        Raises:
            UnknownTopic: there is none; the text lists those that exist.
        """
        ...

    def bounds(self, name: str) -> Mapping[int, OffsetRange]:
        """For each partition, from the first offset still held to the next offset to be written.

        Raises:
            UnknownTopic: there is no such topic.
            TooManyPartitions: it has more than a batch can ask.
        """
        ...

    def offset_at(self, name: str, partition: int, moment: datetime) -> int:
        """The first offset of a partition whose record has `moment` as its timestamp or a later one; else the end.

        As Kafka's `offsetsForTimes` has it.

        Raises:
            UnknownTopic: there is no such topic.
            SegmentDamaged: a file cannot be read.
        """
        ...

    def scan(self, topic_id: str, ranges: Sequence[OffsetRange]) -> Scan:
        """How to read exactly these offsets of one topic, which may be empty ranges.

        Raises:
            TopicRecreated: the topic is not the one with `topic_id` any more.
            OffsetsLost: some offsets are gone (retention), not written yet, or missing in between;
                the text names topic, partition and the missing offsets.
            SegmentDamaged: a file that should hold some of them cannot be read.
        """
        ...

    def usage(self, name: str) -> Mapping[int, Usage]:
        """What each partition takes.

        Raises:
            UnknownTopic: there is no such topic.
        """
        ...
