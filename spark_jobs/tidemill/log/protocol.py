"""What Tidemill asks of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidemill.core.offsets import OffsetRange
from tidemill.core.scan import Scan


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic's identity and size. A topic that is deleted and created again has another `topic_id`."""

    name: str
    topic_id: str
    partitions: int


class Log(Protocol):
    """Topics of ordered, append-only, immutable partitions with dense offsets from 0.

    Every answer is about the moment of the call. Nothing here needs Spark, and nothing here keeps a
    reader's position: positions live in the ledger.
    """

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
