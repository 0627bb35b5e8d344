"""Records of a log as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import zip_longest
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from tidemill.core.log.connect_files import records_of
from tidemill.core.log.offsets import OffsetRange
from tidemill.core.log.scan import KafkaScan, LinesScan, MemoryScan, ParquetScan, Scan, TableScan
from tidemill.core.time.times import UNKNOWN
from tidemill.engine.spark.query import in_few_tasks, of_columns
from tidemill.stores.opened import for_spark

_SPLIT = 250_000
"""A range of more offsets than this is read by several tasks."""

_AT_ONCE = {"kafka.fetch.max.wait.ms": "20"}
"""Every planned offset exists. But the last one is often a transaction marker, which is no record: a consumer that asks
for it would wait half a second for a record behind it."""

_PATIENCE = {
    "kafkaConsumer.pollTimeoutMs": "60000",
    "kafka.default.api.timeout.ms": "30000",
    "fetchOffset.numRetries": "1",
}
"""How long to wait for brokers; after that, the next run asks again."""

_MOST_TASKS = 64
_BATCH_ROWS = 50_000

_DDL = "`partition` int, `offset` bigint, `timestamp` timestamp, `value` binary"
_COLUMNS = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("value", BinaryType()),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("value", pa.binary()),
    ]
)


def records(session: SparkSession, scan: Scan) -> DataFrame:
    """The records of one topic: `partition`, `offset`, `timestamp`, `value`; exactly those of the scan's ranges."""
    match scan:
        case ParquetScan():
            frame = _parquet(session, scan)
        case MemoryScan():
            columns = [[getattr(r, name) for r in scan.records] for name in _ARROW.names]
            rows = pa.table([pa.array(c, f.type) for c, f in zip(columns, _ARROW, strict=True)], schema=_ARROW)
            frame = session.createDataFrame(rows) if scan.records else _none(session)
        case TableScan():
            rows = scan.rows.select(_ARROW.names).cast(_ARROW)
            frame = session.createDataFrame(rows) if rows.num_rows else _none(session)
        case KafkaScan():
            frame = _kafka(session, scan)
        case LinesScan():
            frame = _lines(session, scan)
        case _:
            assert_never(scan)
    return of_columns(in_few_tasks(frame, sum(len(r) for r in scan.ranges)), _COLUMNS)


def _parquet(session: SparkSession, scan: ParquetScan) -> DataFrame:
    wanted = [r for r in scan.ranges if r]
    if not wanted:
        return _none(session)
    # With a schema, Spark opens no file to infer one.
    frame = session.read.schema(_DDL).parquet(*map(for_spark, scan.files))
    if scan.exact:
        return frame
    inside = [
        f"(`partition` = {r.topic_partition.partition} AND `offset` BETWEEN {r.from_offset}L AND {r.until_offset - 1}L)"
        for r in wanted
    ]
    return frame.where(" OR ".join(inside))


def _lines(session: SparkSession, scan: LinesScan) -> DataFrame:
    """The lines of the files, each file in one task, which holds the whole file in memory."""
    if not scan.files:
        return _none(session)
    files = session.read.format("binaryFile").load([for_spark(file) for file in scan.files])
    return files.select("path", "content").mapInArrow(_divided(scan.ranges, scan.firsts), _DDL)


def _divided(
    ranges: Sequence[OffsetRange], firsts: Sequence[tuple[int, int]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def divided(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                found = list(zip(*records_of(row["path"], row["content"], ranges, firsts), strict=True))
                for start in range(0, len(found[0]) if found else 0, _BATCH_ROWS):
                    partitions, offsets, values = (column[start : start + _BATCH_ROWS] for column in found)
                    yield pa.record_batch([partitions, offsets, [UNKNOWN] * len(values), values], schema=_ARROW)

    return divided


def _kafka(session: SparkSession, scan: KafkaScan) -> DataFrame:
    """Exactly these offsets of the topic; each read has one range of each partition."""
    parts = [_kafka_ranges(session, scan, ranges) for ranges in _one_each(scan.ranges)]
    return reduce(DataFrame.unionByName, parts) if parts else _none(session)


def most_tasks(scan: Scan) -> int:
    """About the most tasks in which Spark reads these records."""
    total = sum(len(r) for r in scan.ranges)
    return max(len(scan.ranges), min(-(-total // _SPLIT), _MOST_TASKS), 1)


def _one_each(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """These ranges in as few lists as possible, with at most one range of each partition in a list."""
    by_partition: dict[int, list[OffsetRange]] = {}
    for item in ranges:
        if item:
            by_partition.setdefault(item.topic_partition.partition, []).append(item)
    lists = zip_longest(*by_partition.values())
    return [[item for item in found if item is not None] for found in lists]


def _kafka_ranges(session: SparkSession, scan: KafkaScan, ranges: Sequence[OffsetRange]) -> DataFrame:
    starts = {str(r.topic_partition.partition): r.from_offset for r in ranges}
    ends = {str(r.topic_partition.partition): r.until_offset for r in ranges}
    reader = session.read.format("kafka").options(**{f"kafka.{name}": value for name, value in scan.java.items()})
    reader = reader.options(
        assign=json.dumps({scan.topic: sorted(map(int, starts))}),
        startingOffsets=json.dumps({scan.topic: starts}),
        endingOffsets=json.dumps({scan.topic: ends}),
        # Missing records are an error, never a smaller batch.
        failOnDataLoss="true",
        **{"kafka.isolation.level": "read_committed"},
        **_AT_ONCE,
        **_PATIENCE,
    )
    largest = max(len(r) for r in ranges)
    if largest > _SPLIT:
        total = sum(len(r) for r in ranges)
        reader = reader.option("minPartitions", str(max(len(ranges), min(-(-total // _SPLIT), _MOST_TASKS))))
    return reader.load().select("partition", "offset", "timestamp", "value")


def _none(session: SparkSession) -> DataFrame:
    # Spark Connect cannot make a data frame from an Arrow table without rows.
    return session.createDataFrame([], _DDL)
