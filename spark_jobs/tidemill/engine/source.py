"""Records of a log as a DataFrame."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.core.scan import MemoryScan, ParquetScan, Scan

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
            return _parquet(session, scan)
        case MemoryScan():
            rows = [
                {"partition": r.partition, "offset": r.offset, "timestamp": r.timestamp, "value": r.value}
                for r in scan.records
            ]
            return session.createDataFrame(pa.Table.from_pylist(rows, schema=_ARROW))
        case _:
            assert_never(scan)


def _parquet(session: SparkSession, scan: ParquetScan) -> DataFrame:
    wanted = [r for r in scan.ranges if r]
    if not wanted:
        return session.createDataFrame(_ARROW.empty_table())
    # The schema is given, so that Spark opens no file to find it out.
    frame = session.read.schema(_DDL).parquet(*scan.files)
    inside = [
        (F.col("partition") == r.topic_partition.partition) & F.col("offset").between(r.from_offset, r.until_offset - 1)
        for r in wanted
    ]
    return frame.where(reduce(lambda a, b: a | b, inside))
