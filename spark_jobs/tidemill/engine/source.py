"""Records of a log as a DataFrame."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from tidemill.core.scan import MemoryScan, ParquetScan, Scan
from tidemill.engine.query import in_few_tasks

_DDL = "`partition` int, `offset` bigint, `timestamp` timestamp, `value` binary"
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
            rows = [
                {"partition": r.partition, "offset": r.offset, "timestamp": r.timestamp, "value": r.value}
                for r in scan.records
            ]
            frame = session.createDataFrame(pa.Table.from_pylist(rows, schema=_ARROW)) if rows else _none(session)
        case _:
            assert_never(scan)
    return in_few_tasks(frame, sum(len(r) for r in scan.ranges))


def _parquet(session: SparkSession, scan: ParquetScan) -> DataFrame:
    wanted = [r for r in scan.ranges if r]
    if not wanted:
        return _none(session)
    # The schema is given, so that Spark opens no file to find it out.
    frame = session.read.schema(_DDL).parquet(*scan.files)
    if scan.exact:
        return frame
    inside = [
        f"(`partition` = {r.topic_partition.partition} AND `offset` BETWEEN {r.from_offset}L AND {r.until_offset - 1}L)"
        for r in wanted
    ]
    return frame.where(" OR ".join(inside))


def _none(session: SparkSession) -> DataFrame:
    # Spark Connect makes no data frame of an Arrow table without rows.
    return session.createDataFrame([], _DDL)
