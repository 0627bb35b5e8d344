"""Records of a log as a DataFrame."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType, TimestampType

from tidemill.core.log.offsets import OffsetRange, one_of_each
from tidemill.core.log.scan import KafkaScan, LinesScan, MemoryScan, ParquetScan, Scan, TableScan
from tidemill.engine.read.parts import of_lines, rows_of
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

_DDL = "`partition` int, `offset` bigint, `timestamp` timestamp, `value` binary"
_COLUMNS = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("value", BinaryType()),
    ]
)


def records(session: SparkSession, scan: Scan) -> DataFrame:
    """The records of one topic: `partition`, `offset`, `timestamp`, `value`; exactly those of the scan's ranges."""
    match scan:
        case ParquetScan():
            frame = _parquet(session, scan)
        case MemoryScan() | TableScan():
            rows = rows_of(scan)
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
                yield from of_lines(row["path"], row["content"], ranges, firsts)

    return divided


def _kafka(session: SparkSession, scan: KafkaScan) -> DataFrame:
    """Exactly these offsets of the topic; each read has one range of each partition."""
    parts = [_kafka_ranges(session, scan, ranges) for ranges in one_of_each(scan.ranges)]
    return reduce(DataFrame.unionByName, parts) if parts else _none(session)


def most_tasks(scan: Scan) -> int:
    """About the most tasks in which Spark reads these records."""
    total = sum(len(r) for r in scan.ranges)
    return max(len(scan.ranges), min(-(-total // _SPLIT), _MOST_TASKS), 1)


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
