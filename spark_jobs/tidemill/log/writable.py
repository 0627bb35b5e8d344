"""The interfaces of a log that can also be written to."""

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

    The `sequence` numbers of a producer grow from 0. Records without a key are dealt to partitions in turn: the batch
    begins at `first_slot`, and the next batch begins at `next_slot`. `records` counts the whole batch. If a `digest` of
    the records was taken, other records under the same number are refused.
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
    """The share of a producer's batch that is in one partition, and its offsets."""

    batch: ProducerBatch
    range: OffsetRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedWhole:
    """A producer's batch that is in a topic as a whole. `ranges` say where, if that is known."""

    batch: ProducerBatch
    ranges: tuple[OffsetRange, ...] = ()


@runtime_checkable
class AppendsAtOnce(Protocol):
    """A log that accepts records for several partitions all at once."""

    def append_at_once(
        self, topic: str, shares: Sequence[tuple[int, pa.Table]], *, batch: ProducerBatch | None = None
    ) -> tuple[OffsetRange, ...]:
        """Append the share of each partition, all of them or none, durably, and return where they are.

        With `batch`, nothing is written if the batch is in the topic already; then the result says where, if that is
        known. Ranges may also hold records of others.

        Raises:
            UnknownTopic: the topic does not exist.
            LogInputError: the batch is there with other records, or the producer has appended newer ones.
            Fenced: another process appends for this producer.
            CommitUnknown: the records may have been written.
        """
        ...

    def last_batch(self, topic: str, producer_id: str) -> LandedWhole | None:
        """Return the producer's newest batch in the topic. Ends what an earlier process left open first."""
        ...


@runtime_checkable
class WritableLog(Log, Protocol):
    """A log that can be appended to and trimmed from the front. Records never change once written."""

    def create_topic(self, name: str, partitions: int, *, force: bool = False) -> Topic:
        """Create an empty topic. If two processes create it at once, one succeeds.

        Raises:
            LogInputError: the name is taken or not allowed, or `partitions` is below 1 or above the limits of
                `checks.check_new_topic`; `force` raises the limit.
        """
        ...

    def delete_topic(self, name: str) -> None:
        """Delete the topic and all its records.

        Raises:
            UnknownTopic: the topic does not exist.
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
        """Append the records to the end of the partition, all or none, durably, and return their offsets.

        With `at`, only if the partition ends there. With `batch`, nothing is written if a share of this batch is in the
        partition already; then the result is the range of that share.

        Raises:
            UnknownTopic: the topic does not exist.
            LogInputError: there is no such partition; `at` is not the end; a share of the batch is there with another
                number of records; or the producer has appended newer batches.
            CommitUnknown: the records may have been written and trimmed away at once.
        """
        ...

    def landed(self, topic: str, partition: int, producer_id: str, sequence: int | None = None) -> LandedBatch | None:
        """Return the share of a producer's batch in this partition; without `sequence`, of its newest batch here.

        None if there is no such share, or if the log forgot it because of retention or many other producers.
        """
        ...

    def trim(self, topic: str, partition: int, before_offset: int) -> OffsetRange:
        """Delete every record below `before_offset` for good, and return the range that is left.

        A start that is already higher stays.

        Raises:
            LogInputError: `before_offset` is past the end.
        """
        ...
