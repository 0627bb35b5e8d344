"""Appends to a topic: chooses the partitions, writes each share, and never writes the same batch twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.errors import LogInputError
from tidemill.core.log.offsets import OffsetRange
from tidemill.log import refusals
from tidemill.log.identity import digest_of
from tidemill.log.partitioning import ByKey, Partitioning, RoundRobin, deal
from tidemill.log.records import NewRecord, as_table
from tidemill.log.writable import AppendsAtOnce, LandedBatch, LandedWhole, ProducerBatch, WritableLog

__all__ = ["ByKey", "Partitioning", "Producer", "RoundRobin"]

_BY_KEY = ByKey()


class Producer:
    """Appends batches of records to one topic.

    Records keep their order within a partition. In Kafka a batch lands as a whole or not at all. In a file log it is
    written partition by partition, each share as a whole; a crash between two shares leaves the first ones in the log.

    With a `producer_id` the producer is idempotent. Each batch has a sequence number, growing from 0. If a batch is
    appended again, by this process or a later one, after a crash or a lost answer, only its missing shares are written.
    The caller must use the same records under the same number, must not use a new number before the last one succeeded,
    and must use an id in one process at a time. An idempotent producer deals records without a key on from where its
    last batch ended; a producer without an id starts at partition 0.

    Raises:
        UnknownTopic: the topic does not exist.
        TooManyPartitions: the topic has more partitions than a batch can ask.
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
        refusals.check_readable(self._topic)
        self._partitioning = partitioning
        self._producer_id = producer_id
        self._slot = 0
        self._last: ProducerBatch | None = None

    @property
    def producer_id(self) -> str | None:
        """The id under which batches are appended; None if the producer is not idempotent."""
        return self._producer_id

    @property
    def idempotent(self) -> bool:
        """Whether the producer has an id, so that each append needs a sequence number."""
        return self._producer_id is not None

    def append(
        self, records: pa.Table | Iterable[NewRecord], *, sequence: int | None = None
    ) -> tuple[OffsetRange, ...]:
        """Append one batch and return where its records are, at most one range per partition.

        If the batch landed before, these are the ranges where it landed. A share that retention has deleted since may
        be left out, and Kafka knows only the ranges of the newest batch.

        Args:
            records: what to append; may be empty.
            sequence: the number of the batch. Required with a producer id, forbidden without one.

        Raises:
            LogInputError: a sequence number without a producer id or the other way round; the batch before did not land
                as a whole; the batch landed with other records.
            TopicRecreated: the topic was deleted and created again since this producer was made.
            CommitUnknown: the records may or may not have been written.
        """
        refusals.check_identity(self._log.topic(self._topic.name), self._topic.topic_id)
        table = as_table(records)
        if (self._producer_id is None) != (sequence is None):
            raise LogInputError(
                f"producer id {self._producer_id} with sequence {sequence}",
                fix="give an id and a sequence number for each batch, or neither",
            )
        if self._producer_id is None or sequence is None:
            shares, self._slot = deal(table, self._partitioning, self._topic.partitions, self._slot)
            return self._write(shares, None)
        return self._append_once(self._producer_id, table, sequence)

    @property
    def _at_once(self) -> bool:
        return isinstance(self._log, AppendsAtOnce)

    def next_sequence(self) -> int:
        """One more than this producer's highest sequence number in the log; 0 if it has no batch there."""
        newest = self._newest(self._producer_id) if self._producer_id else None
        return newest.batch.sequence + 1 if newest else 0

    def landed(self, sequence: int) -> tuple[OffsetRange, ...]:
        """Where the records of a batch are, as far as the log knows; empty if it did not land."""
        if self._producer_id is None:
            return ()
        if isinstance(self._log, AppendsAtOnce):
            newest = self._newest(self._producer_id)
            return newest.ranges if newest and newest.batch.sequence == sequence else ()
        return tuple(share.range for share in self._shares(self._producer_id, sequence))

    def landed_records(self, sequence: int) -> int:
        """How many records of a batch landed, as far as the log knows. Records deleted since by retention may count."""
        if self._producer_id is None:
            return 0
        if isinstance(self._log, AppendsAtOnce):
            newest = self._newest(self._producer_id)
            return newest.batch.records if newest and newest.batch.sequence == sequence else 0
        return sum(map(len, self.landed(sequence)))

    def _write(self, shares: Sequence[tuple[int, pa.Table]], batch: ProducerBatch | None) -> tuple[OffsetRange, ...]:
        if isinstance(self._log, AppendsAtOnce):
            return self._log.append_at_once(self._topic.name, shares, batch=batch)
        return tuple(self._log.append(self._topic.name, number, share, batch=batch) for number, share in shares)

    def _newest(self, producer_id: str) -> LandedWhole | None:
        """The producer's newest batch, and the ranges of those of its shares that the log knows."""
        if isinstance(self._log, AppendsAtOnce):
            return self._log.last_batch(self._topic.name, producer_id)
        landed = [
            share
            for number in range(self._topic.partitions)
            if (share := self._log.landed(self._topic.name, number, producer_id))
        ]
        if not landed:
            return None
        newest = max((share.batch for share in landed), key=lambda batch: batch.sequence)
        ranges = tuple(share.range for share in landed if share.batch.sequence == newest.sequence)
        return LandedWhole(batch=newest, ranges=ranges)

    def _append_once(self, producer_id: str, table: pa.Table, sequence: int) -> tuple[OffsetRange, ...]:
        first_slot = self._last.next_slot if self._last and sequence > self._last.sequence else None
        newest: LandedWhole | None = None
        if first_slot is None:
            newest = self._newest(producer_id)
            if newest and sequence < newest.batch.sequence:
                return self._older(producer_id, sequence, table)
            first_slot = _first_slot(newest, sequence, whole=self._at_once) if newest else 0
        shares, next_slot = deal(table, self._partitioning, self._topic.partitions, first_slot)
        batch = ProducerBatch(
            producer_id=producer_id,
            sequence=sequence,
            first_slot=first_slot,
            next_slot=next_slot,
            records=len(table),
            digest=digest_of(table),
        )
        if newest and newest.batch.sequence == sequence:
            refusals.same_batch(self._topic, newest, batch, None if self._at_once else shares)
        written = self._write(shares, batch)
        # The caller must ensure that nobody else appends under this id.
        self._last = batch
        return written

    def _older(self, producer_id: str, sequence: int, table: pa.Table) -> tuple[OffsetRange, ...]:
        """Where a batch landed that is not the newest; Kafka does not know, so it is empty there."""
        if isinstance(self._log, AppendsAtOnce):
            return ()
        shares = self._shares(producer_id, sequence)
        digest = digest_of(table)
        for share in shares:
            again = replace(share.batch, records=len(table), digest=digest)
            refusals.repeated(share, again, len(share.range))
        return tuple(share.range for share in shares)

    def _shares(self, producer_id: str, sequence: int) -> tuple[LandedBatch, ...]:
        found = (
            self._log.landed(self._topic.name, number, producer_id, sequence)
            for number in range(self._topic.partitions)
        )
        return tuple(share for share in found if share)


def _first_slot(newest: LandedWhole, sequence: int, *, whole: bool) -> int:
    """The slot from which to deal a batch that is not older than the newest one."""
    last = newest.batch
    if sequence == last.sequence:
        return last.first_slot
    there = last.records if whole else sum(map(len, newest.ranges))
    if there != last.records:
        raise LogInputError(
            f"producer {last.producer_id}: sequence {last.sequence} landed in part, {there} of {last.records} "
            f"records; sequence {sequence} cannot come before the rest",
            fix=f"append sequence {last.sequence} again, with the same records",
        )
    return last.next_slot
