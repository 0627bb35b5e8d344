"""The bridge from a Kinesis stream into a topic of the file log: each record once, in the order of its shard.

A shard is a producer of the topic. The sequence number of a batch is that of its last Kinesis record. So the topic
itself says how far each shard was read, and no other state is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]

from tidemill.core.errors import Fenced, LogInputError, LogUnreachable
from tidemill.core.log.offsets import OffsetRange
from tidemill.log.records import NewRecord
from tidemill.log.writable import ProducerBatch, WritableLog

SHARD, SEQUENCE = "kinesis-shard", "kinesis-sequence"
"""Headers of a record: its shard, and its sequence number in the shard."""

_AT_A_TIME = 10_000
_AGGREGATED = b"\xf3\x89\x9a\xc2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A shard of a stream. After a split or a merge, its `parents` hold the earlier records."""

    name: str
    parents: tuple[str, ...]

    @property
    def number(self) -> int:
        """The number at the end of its name; later shards have higher numbers."""
        return int(self.name.rpartition("-")[2])


class KinesisBridge:
    """Copies the records of a stream into a topic of a file log.

    A shard goes to the partition given by its number modulo the topic's partitions. Any number of bridges may run: if
    two append at the same place, one is fenced. The bridge does not notice records that Kinesis dropped before they
    were read: keep the stream's retention longer than the longest pause of the bridge.
    """

    def __init__(self, client: Any, stream: str, log: WritableLog, topic: str) -> None:
        self._client, self._stream, self._log = client, stream, log
        self._topic = log.topic(topic)

    def run(self, *, most: int | None = None) -> Iterator[OffsetRange]:
        """Copy the records that are there now, at most `most`, and yield the range of each append.

        Raises:
            LogUnreachable: Kinesis does not answer. Appended records stay, and the next run continues after them.
            Fenced: another bridge copies the same shard.
            LogInputError: a record aggregates several records of the producer library, which the bridge cannot split.
        """
        open_shards: set[str] = set()
        left = most
        for shard in self.shards():
            # A child shard waits until its parents are read to the end, so that the records of a key stay in order.
            if open_shards & set(shard.parents):
                open_shards.add(shard.name)
                continue
            ended = False
            for landed, ended in self._drain(shard, left):  # noqa: B007  the last one counts
                if landed is not None:
                    left = None if left is None else left - len(landed)
                    yield landed
            if not ended:
                open_shards.add(shard.name)
            if left is not None and left <= 0:
                return

    def shards(self) -> Sequence[Shard]:
        """The shards of the stream, parents first."""
        found: list[Mapping[str, Any]] = []
        asked: dict[str, str] = {"StreamName": self._stream}
        with self._explained():
            while asked:
                answer = self._client.list_shards(**asked)
                found.extend(answer["Shards"])
                asked = {"NextToken": answer["NextToken"]} if answer.get("NextToken") else {}
        parents = ("ParentShardId", "AdjacentParentShardId")
        shards = (Shard(name=s["ShardId"], parents=tuple(s[p] for p in parents if s.get(p))) for s in found)
        return sorted(shards, key=lambda shard: shard.number)

    def _drain(self, shard: Shard, most: int | None) -> Iterator[tuple[OffsetRange | None, bool]]:
        """Copy a shard. Yields each appended range, and whether the shard has ended and is fully read."""
        partition = shard.number % self._topic.partitions
        end = self._log.bounds(self._topic.name)[partition].until_offset
        iterator, left = self._iterator(shard, partition), most
        while iterator is not None and (left is None or left > 0):
            with self._explained():
                answer = self._client.get_records(ShardIterator=iterator, Limit=min(left or _AT_A_TIME, _AT_A_TIME))
            iterator, records = answer.get("NextShardIterator"), answer["Records"]
            if records:
                landed = self._append(shard, partition, end, records)
                end, left = landed.until_offset, None if left is None else left - len(landed)
                yield landed, iterator is None
            # A shard that is still written to never ends: newer records are left to the next run.
            if iterator is not None and not answer.get("MillisBehindLatest"):
                break
        yield None, iterator is None

    def _iterator(self, shard: Shard, partition: int) -> str:
        """Return an iterator that starts after the shard's last record in the topic."""
        landed = self._log.landed(self._topic.name, partition, self._producer(shard))
        where: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
        if landed is not None:
            number = str(landed.batch.sequence)
            where = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
        with self._explained():
            found = self._client.get_shard_iterator(StreamName=self._stream, ShardId=shard.name, **where)
        return str(found["ShardIterator"])

    def _append(self, shard: Shard, partition: int, end: int, records: Sequence[Mapping[str, Any]]) -> OffsetRange:
        batch = ProducerBatch(
            producer_id=self._producer(shard),
            sequence=int(records[-1]["SequenceNumber"]),
            first_slot=0,
            next_slot=0,
            records=len(records),
        )
        rows = [self._record(shard, record) for record in records]
        try:
            return self._log.append(self._topic.name, partition, rows, at=end, batch=batch)
        except LogInputError as error:
            raise Fenced(
                f"{self._stream}: {shard.name}: another bridge has gone on meanwhile: {error.message}",
                fix="let one bridge at a time bring a stream into a topic",
            ) from error

    def _record(self, shard: Shard, record: Mapping[str, Any]) -> NewRecord:
        if record["Data"].startswith(_AGGREGATED):
            raise LogInputError(
                f"{self._stream}: {shard.name}: record {record['SequenceNumber']} holds several, packed by Kinesis's "
                "producer library; nothing of this part was brought",
                fix="switch AggregationEnabled off in the producers",
            )
        return NewRecord(
            value=record["Data"],
            key=record["PartitionKey"].encode(),
            timestamp=record["ApproximateArrivalTimestamp"],
            headers=((SHARD, shard.name.encode()), (SEQUENCE, record["SequenceNumber"].encode())),
        )

    def _producer(self, shard: Shard) -> str:
        return f"kinesis/{self._stream}/{shard.name}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            said = error.response.get("Error", {})
            raise LogUnreachable(
                f"Kinesis: stream {self._stream}: {said.get('Code')}: {said.get('Message')}",
                fix="check the stream's name and region, and who may read it; then run again",
            ) from None
        except BotoCoreError as error:
            raise LogUnreachable(f"Kinesis: stream {self._stream}: no answer: {error}", fix="run again") from None
