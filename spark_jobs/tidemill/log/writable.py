"""What Tidemill asks of a log that it writes to as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.core.log.offsets import OffsetRange
from tidemill.log.interface import Log, Topic
from tidemill.log.records import NewRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBatch:
    """The identity of one append of an idempotent producer, over all partitions it touches.

    Batches of a producer have growing `sequence` numbers from 0. Keyless records are dealt to
    partitions in turn: the batch was dealt from `first_slot` on, and the next one begins at
    `next_slot`. `records` counts all of the batch. `digest` is that of its records, where it was taken: other records
    under the same number are refused.
    """

    producer_id: str
    sequence: int
    first_slot: int
    next_slot: int
    records: int
    digest: str | None = None

    def __post_init__(self) -> None:
        if not self.producer_id or self.sequence < 0:
            raise LogInputError(
                f"not a batch of a producer: id {self.producer_id!r}, sequence {self.sequence}",
                fix="give an id that is not empty and sequence numbers from 0",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedBatch:
    """The share of a producer's batch that is in one partition, and where."""

    batch: ProducerBatch
    range: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedWhole:
    """A producer's batch that is in a topic as a whole; `ranges` say where, if that is known."""

    batch: ProducerBatch
    ranges: tuple[OffsetRange, ...] = ()


@runtime_checkable
class AppendsAtOnce(Protocol):
    """A log that takes records for several partitions all at once."""

    def append_at_once(
        self, topic: str, shares: Sequence[tuple[int, pa.Table]], *, batch: ProducerBatch | None = None
    ) -> tuple[OffsetRange, ...]:
        """Write the share of each partition behind its end, all of them or none, durably, and say where.

        With `batch`, only if it is not in the topic yet; otherwise nothing is written, and the answer is where it is,
        if that is known. Ranges may hold records of others, too.

        Raises:
            UnknownTopic: there is no such topic.
            LogInputError: the batch is there with other records, or the producer has gone on to newer ones.
            Fenced: another process appends for this producer.
            CommitUnknown: the records may have been written.
        """
        ...

    def last_batch(self, topic: str, producer_id: str) -> LandedWhole | None:
        """The producer's newest batch in the topic; what an earlier process left open is given up before."""
        ...


@runtime_checkable
class WritableLog(Log, Protocol):
    """A log that can be appended to and trimmed from the front. Records never change once written."""

    def create_topic(self, name: str, partitions: int, *, force: bool = False) -> Topic:
        """A new, empty topic; of two who create it at once, one succeeds.

        Raises:
            LogInputError: the name is taken or not a name, or `partitions` is below 1 or too many, see
                `checks.check_new_topic`; `force` allows more.
        """
        ...

    def delete_topic(self, name: str) -> None:
        """Remove the topic and all its records.

        Raises:
            UnknownTopic: there is no such topic.
        """
        ...

    def append(
        self,
        topic: str,
        partition: int,
        records: pa.Table | Iterable[NewRecord],
        *,
        at: int | None = None,
        batch: ProducerBatch | None = None,
    ) -> OffsetRange:
        """Write the records behind the end of the partition, all or none, durably, and say where.

        With `at`, only if the end is there. With `batch`, only if no share of this batch is in the
        partition yet; otherwise nothing is written and the range of that share is the answer.

        Raises:
            UnknownTopic: there is no such topic.
            LogInputError: no such partition; `at` is not the end; a share of the batch is there with
                another number of records, or the producer has gone on to newer batches since.
            CommitUnknown: the records may have been written and trimmed away at once.
        """
        ...

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """The share of a producer's batch in this partition; without `sequence`, of its newest here.

        None when there is none, or when retention or many other producers made the log forget it.
        """
        ...

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """Give up every record below `before_offset`, for good, and return what the partition now holds.

        A start that is already higher stays.

        Raises:
            LogInputError: `before_offset` is past the end.
        """
        ...
