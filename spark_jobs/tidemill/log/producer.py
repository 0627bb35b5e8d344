"""Appending to a topic: choose the partitions, write each share, and never the same batch twice."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.core.offsets import OffsetRange
from tidemill.log import checks
from tidemill.log.partitioning import ByKey, Partitioning, RoundRobin, deal
from tidemill.log.records import NewRecord, as_table
from tidemill.log.writable import LandedBatch, ProducerBatch, WritableLog

__all__ = ["ByKey", "Partitioning", "Producer", "RoundRobin"]

_BY_KEY = ByKey()


class Producer:
    """Appends batches of records to one topic.

    Records keep their order within a partition. A batch is written partition by partition, each share
    as a whole; a crash between two shares leaves the first ones in the log.

    With a `producer_id` the producer is idempotent: each batch has a sequence number, growing from 0,
    and a batch that is appended again, by this process or by one after it, after any crash or lost
    answer, completes the shares that are missing and writes nothing twice. The caller's duty: the same
    records under the same number, no new number before the last one succeeded, and one process at a
    time for an id. An idempotent producer deals keyless records on from where its last batch ended,
    another one from partition 0.

    Raises:
        UnknownTopic: there is no such topic.
    """

    def __init__(
        self,
        log: WritableLog,
        topic: str,
        *,
        partitioning: Partitioning = _BY_KEY,
        producer_id: str | None = None,
    ) -> None:
        self._log = log
        self._topic = log.topic(topic)
        self._partitioning = partitioning
        self._producer_id = producer_id
        self._slot = 0

    @property
    def idempotent(self) -> bool:
        """Whether the producer has an id, so that each append needs a sequence number."""
        return self._producer_id is not None

    def append(
        self, records: pa.Table | Iterable[NewRecord], *, sequence: int | None = None
    ) -> tuple[OffsetRange, ...]:
        """Append one batch and say where its records are, at most one range per partition.

        For a batch that landed before, the ranges are those it landed at; a share that retention has
        removed since may be left out.

        Args:
            records: what to append; may be empty.
            sequence: the number of the batch, exactly when the producer has an id.

        Raises:
            LogInputError: a sequence number without a producer id or the other way round; the batch
                before did not land as a whole; the batch landed with other records.
            TopicRecreated: the topic was deleted and created again since this producer was made.
            CommitUnknown: see `WritableLog.append`.
        """
        checks.check_identity(self._log.topic(self._topic.name), self._topic.topic_id)
        table = as_table(records)
        if (self._producer_id is None) != (sequence is None):
            raise LogInputError(
                f"producer id {self._producer_id} with sequence {sequence}",
                fix="give an id and a sequence number for each batch, or neither",
            )
        if self._producer_id is None or sequence is None:
            shares, self._slot = deal(table, self._partitioning, self._topic.partitions, self._slot)
            return tuple(self._log.append(self._topic.name, number, share) for number, share in shares)
        return self._append_once(self._producer_id, table, sequence)

    def next_sequence(self) -> int:
        """One more than the highest sequence number of this producer in the log; 0 when there is none."""
        shares = self._newest(self._producer_id) if self._producer_id else []
        return shares[0].batch.sequence + 1 if shares else 0

    def _newest(self, producer_id: str) -> list[LandedBatch]:
        """The shares of the producer's newest batch that are in the log."""
        landed = [
            share
            for number in range(self._topic.partitions)
            if (share := self._log.landed(self._topic.name, number, producer_id))
        ]
        sequence = max((share.batch.sequence for share in landed), default=0)
        return [share for share in landed if share.batch.sequence == sequence]

    def _append_once(self, producer_id: str, table: pa.Table, sequence: int) -> tuple[OffsetRange, ...]:
        newest = self._newest(producer_id)
        if newest and sequence < newest[0].batch.sequence:
            return self._landed(producer_id, sequence)
        first_slot = _first_slot(newest, sequence)
        shares, next_slot = deal(table, self._partitioning, self._topic.partitions, first_slot)
        batch = ProducerBatch(
            producer_id=producer_id,
            sequence=sequence,
            first_slot=first_slot,
            next_slot=next_slot,
            records=len(table),
        )
        return tuple(self._log.append(self._topic.name, number, share, batch=batch) for number, share in shares)

    def _landed(self, producer_id: str, sequence: int) -> tuple[OffsetRange, ...]:
        found = (
            self._log.landed(self._topic.name, number, producer_id, sequence)
            for number in range(self._topic.partitions)
        )
        return tuple(share.range for share in found if share)


def _first_slot(newest: list[LandedBatch], sequence: int) -> int:
    """Where a batch that is not older than the newest begins to deal."""
    if not newest:
        return 0
    last = newest[0].batch
    if sequence == last.sequence:
        return last.first_slot
    there = sum(len(share.range) for share in newest)
    if there != last.records:
        raise LogInputError(
            f"producer {last.producer_id}: sequence {last.sequence} landed in part, {there} of {last.records} "
            f"records; sequence {sequence} cannot come before the rest",
            fix=f"append sequence {last.sequence} again, with the same records",
        )
    return last.next_slot
