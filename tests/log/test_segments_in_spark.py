"""Spark reads segments as it reads Kafka."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.log.file import FileLog
from tidemill.log.records import NewRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_spark_reads_segments_with_the_columns_of_its_kafka_source(spark: SparkSession, tmp_path: Path) -> None:
    log = FileLog(tmp_path / "a log, at 100%")
    topic = log.create_topic("t", 1)
    before_1970 = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    log.append("t", 0, [NewRecord(value=b"\xff", key=b"k", timestamp=before_1970, headers=(("h", None),))])
    log.append("t", 0, [NewRecord(value=b"b"), NewRecord(value=None)])
    log.append("t", 0, [NewRecord(value=b"not wanted")])
    scan = log.scan(topic.topic_id, [OffsetRange(TopicPartition("t", 0), 0, 3)])
    frame = spark.read.parquet(*scan.files)
    assert dict(frame.dtypes) == {
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "timestamp": "timestamp",
        "timestampType": "int",
        "key": "binary",
        "value": "binary",
        "headers": "array<struct<key:string,value:binary>>",
    }
    rows = frame.selectExpr("*", "unix_micros(timestamp) as micros").orderBy("offset").collect()
    assert [(row.topic, row.partition, row.offset) for row in rows] == [("t", 0, 0), ("t", 0, 1), ("t", 0, 2)]
    assert [row.value for row in rows] == [b"\xff", b"b", None]
    assert [row.timestampType for row in rows] == [0, 1, 1]
    assert (rows[0].micros, rows[0].key, rows[0].headers[0].key) == (-1, b"k", "h")
    assert (rows[1].key, rows[1].headers) == (None, None)
