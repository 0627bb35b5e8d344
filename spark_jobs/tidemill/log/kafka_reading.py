"""Reads records of Kafka in this process: one by one, or all of a scan into memory. Only committed ones count."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as Place

from tidemill.core.errors import LogError, LogUnreachable, OffsetsLost
from tidemill.core.log.no_copy import without_copy
from tidemill.core.log.offsets import OffsetRange, one_of_each
from tidemill.core.log.scan import KafkaScan, Record, TableScan
from tidemill.core.time.times import nearest_moment
from tidemill.log.kafka import PATIENCE

_ROWS = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("value", pa.binary()),
    ]
)
_AT_ONCE, _AHEAD = 20_000, 1_000_000
_FURTHEST = 2**63 // 1000 - 1
_MOST_ROUNDS = 8
"""A partition with more ranges is left to Spark, which reads them side by side."""

_WAIT = 0.1
"""Seconds to wait for a record before the time that the cluster may be silent is looked at."""


def read_scan(scan: KafkaScan) -> Iterator[Record]:
    """Yield the committed records of a scan, partition by partition.

    Raises:
        LogUnreachable: the cluster does not answer.
        OffsetsLost: retention has deleted some of them since the scan was made.
    """
    with _consumer(scan) as consumer:
        for item in scan.ranges:
            for some in _of_ranges(consumer, scan.topic, [item]):
                yield from map(_record, some.messages)


def fetched(scan: KafkaScan, *, most: int) -> TableScan | None:
    """The same records in memory; None if their values have more than `most` bytes, or they lie in many ranges.

    Raises:
        LogUnreachable: the cluster does not answer.
        OffsetsLost: retention has deleted some of them since the scan was made.
    """
    parts, size, rounds = [], 0, one_of_each(scan.ranges)
    if len(rounds) > _MOST_ROUNDS:
        return None
    with _consumer(scan, ahead=_AHEAD) as consumer, _uncollected():
        for ranges in rounds:
            for some in _of_ranges(consumer, scan.topic, ranges):
                parts.append(_rows(scan.topic, some))
                size += parts[-1]["value"].nbytes
                if size > most:
                    return None
    return TableScan(rows=pa.Table.from_batches(parts, _ROWS), ranges=scan.ranges, dense=False)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's cyclic collector. Messages are in no cycle, but so many new objects let it look at all others.

    That takes half of the time in a process that has loaded Spark.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def _consumer(scan: KafkaScan, *, ahead: int = 100_000) -> Iterator[Consumer]:
    """A client that reads up to so many records, or 64 MB, ahead of what it is asked for."""
    settings: dict[str, Any] = {
        **scan.client,
        "group.id": "tidemill.reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "check.crcs": True,
        # Only an answer without records says that no marker of a transaction is left before the end of a range.
        "fetch.wait.max.ms": 10,
        # The client would stop for a second whenever it is 100,000 records ahead.
        "fetch.queue.backoff.ms": 10,
        "queued.min.messages": ahead,
        "log_level": 0,
    }
    try:
        consumer = Consumer(settings)
        try:
            yield consumer
        finally:
            consumer.close()
    except KafkaException as error:
        raise LogUnreachable(
            f"Kafka: topic {scan.topic}: {error.args[0]}", fix="check [log] security and credentials, then try again"
        ) from None


class _Some(NamedTuple):
    """Some messages, with the partition and the offset of each."""

    messages: Sequence[Any]
    partitions: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @staticmethod
    def of(messages: Sequence[Any]) -> _Some:
        """The messages; there may be millions, so they are asked without a line of Python for each."""
        message, count = type(messages[0]) if messages else Message, len(messages)
        return _Some(
            messages,
            np.fromiter(map(message.partition, messages), np.int32, count),
            np.fromiter(map(message.offset, messages), np.int64, count),
        )

    @property
    def last(self) -> Mapping[int, int]:
        """The last offset of each partition."""
        return {int(n): int(self.offsets[self.partitions == n][-1]) for n in np.unique(self.partitions)}


def _of_ranges(consumer: Consumer, topic: str, ranges: Sequence[OffsetRange]) -> Iterator[_Some]:
    """The messages of ranges of different partitions, in any order of these; those of one partition in order."""
    left = {item.topic_partition.partition: item for item in ranges}
    places = [Place(topic, partition, item.from_offset) for partition, item in left.items()]
    consumer.assign(places)
    # A partition whose range before has ended is paused.
    consumer.resume(places)
    heard = time.monotonic()
    while left:
        before = frozenset(left)
        some = _taken(_next(consumer, sum(map(len, left.values()))), left)
        ended = before - left.keys()
        if some.messages:
            yield some
        if some.messages or ended:
            # Brokers would go on to send what lies behind a range.
            consumer.pause([Place(topic, partition) for partition in sorted(ended)])
            heard = time.monotonic()
        elif time.monotonic() - heard > PATIENCE:
            item = next(iter(left.values()))
            raise LogUnreachable(f"Kafka gave no record of {item} in {PATIENCE:.0f} seconds", fix="try again later")


def _next(consumer: Consumer, most: int) -> list[Any]:
    """What has come, as soon as anything has: a request for many would wait until there are so many."""
    first = consumer.poll(_WAIT)
    return [] if first is None else [first, *consumer.consume(min(most, _AT_ONCE), 0)]


def _taken(messages: list[Any], left: dict[int, OffsetRange]) -> _Some:
    """Those of the messages that are records of the ranges; they are looked at one by one only where a range ends."""
    if messages and {*map(type(messages[0]).error, messages)} == {None}:
        some = _Some.of(messages)
        if all((item := left.get(n)) and offset < item.until_offset - 1 for n, offset in some.last.items()):
            return some
    return _Some.of([message for message in messages if _counts(message, left)])


def _counts(message: Any, left: dict[int, OffsetRange]) -> bool:
    """Whether a message is a record of the ranges; a range that ends with it, or before it, is left no more.

    A broker may say that the partition ends before the range does: one that has just become its leader may not know
    the last records yet. That ends nothing.
    """
    partition = message.partition()
    item = left.get(partition)
    if item is None:
        return False
    if (error := message.error()) is not None:
        if error.code() != KafkaError._PARTITION_EOF:
            raise _failed(item, error)
        if message.offset() >= item.until_offset:
            del left[partition]
        return False
    offset = message.offset()
    if offset >= item.until_offset - 1:
        del left[partition]
    return bool(offset < item.until_offset)


def _failed(item: OffsetRange, error: KafkaError) -> LogError:
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        return OffsetsLost(
            f"{item}: the log no longer holds its start: {error.str()}", fix=f"bring it back; {without_copy()}"
        )
    return LogUnreachable(f"Kafka: {item}: {error.str()}", fix="try again later")


def _rows(topic: str, some: _Some) -> pa.RecordBatch:
    messages, message = some.messages, type(some.messages[0])
    times = np.fromiter(map(itemgetter(1), map(message.timestamp, messages)), np.int64, len(messages))
    columns = [
        pa.repeat(pa.scalar(topic, pa.string()), len(messages)),
        pa.array(some.partitions),
        pa.array(some.offsets),
        pa.array(_micros(times)).cast(pa.timestamp("us", tz="UTC")),
        pa.array([*map(message.value, messages)], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ROWS)


def _micros(milliseconds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """As Spark's reader says it: a record without a time has one of -1 millisecond."""
    return np.clip(milliseconds, -_FURTHEST, _FURTHEST) * 1000


def _record(message: Any) -> Record:
    kind, milliseconds = message.timestamp()
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=nearest_moment(0 if kind == TIMESTAMP_NOT_AVAILABLE else int(_micros(np.array(milliseconds)))),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )
