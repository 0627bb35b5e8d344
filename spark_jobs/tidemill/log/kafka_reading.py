"""Reads records of Kafka in this process: one by one, or all of a scan into memory. Only committed ones count."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError
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
_AT_ONCE = 10_000
_WAIT = 0.1
"""Seconds until a request that expects more records gives those that there are."""


def read_scan(scan: KafkaScan) -> Iterator[Record]:
    """Yield the committed records of a scan, partition by partition.

    Raises:
        LogUnreachable: the cluster does not answer.
        OffsetsLost: retention has deleted some of them since the scan was made.
    """
    with _consumer(scan) as consumer:
        for item in scan.ranges:
            for messages in _of_ranges(consumer, scan.topic, [item]):
                yield from map(_record, messages)


def fetched(scan: KafkaScan, *, most: int) -> TableScan | None:
    """The same records in memory; None if their values have more than `most` bytes together.

    Raises:
        LogUnreachable: the cluster does not answer.
        OffsetsLost: retention has deleted some of them since the scan was made.
    """
    parts, size = [], 0
    with _consumer(scan) as consumer:
        for ranges in one_of_each(scan.ranges):
            for messages in _of_ranges(consumer, scan.topic, ranges):
                parts.append(_rows(scan.topic, messages))
                size += parts[-1]["value"].nbytes
                if size > most:
                    return None
    return TableScan(rows=pa.Table.from_batches(parts, _ROWS), ranges=scan.ranges, dense=False)


@contextmanager
def _consumer(scan: KafkaScan) -> Iterator[Consumer]:
    settings: dict[str, Any] = {
        **scan.client,
        "group.id": "tidemill.reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def _of_ranges(consumer: Consumer, topic: str, ranges: Sequence[OffsetRange]) -> Iterator[list[Any]]:
    """The messages of ranges of different partitions, in any order of these; those of one partition in order."""
    left = {item.topic_partition.partition: item for item in ranges}
    consumer.assign([Place(topic, partition, item.from_offset) for partition, item in left.items()])
    heard = time.monotonic()
    while left:
        wanted = min(sum(map(len, left.values())), _AT_ONCE)
        given = consumer.consume(wanted, _WAIT)
        if not given and time.monotonic() - heard > PATIENCE:
            item = next(iter(left.values()))
            raise LogUnreachable(f"Kafka gave no record of {item} in {PATIENCE:.0f} seconds", fix="try again later")
        heard = time.monotonic() if given else heard
        messages = [message for message in given if _counts(message, left)]
        if messages:
            yield messages


def _counts(message: Any, left: dict[int, OffsetRange]) -> bool:
    """Whether a message is a record of the ranges; a range that ends with it, or before it, is left no more."""
    partition = message.partition()
    item = left.get(partition)
    if item is None:
        return False
    if (error := message.error()) is not None:
        if error.code() != KafkaError._PARTITION_EOF:
            raise _failed(item, error)
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


def _rows(topic: str, messages: Sequence[Any]) -> pa.RecordBatch:
    columns = [
        pa.repeat(pa.scalar(topic, pa.string()), len(messages)),
        pa.array([message.partition() for message in messages], pa.int32()),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([_micros(*message.timestamp()) for message in messages], pa.timestamp("us", tz="UTC")),
        pa.array([message.value() for message in messages], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ROWS)


def _micros(kind: int, milliseconds: int) -> int:
    return 0 if kind == TIMESTAMP_NOT_AVAILABLE else milliseconds * 1000


def _record(message: Any) -> Record:
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=nearest_moment(_micros(*message.timestamp())),
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )
