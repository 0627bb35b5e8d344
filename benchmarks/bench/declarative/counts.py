"""A streaming table of Spark Declarative Pipelines. BENCH_LOG is the folder of the log."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

LOG = "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary, value binary"
RECORD = "ts timestamp, user string, page string, status int, bytes bigint, ms bigint"


@dp.table
def counts() -> DataFrame:
    """Requests, bytes and the slowest answer per user and window, when the window has closed."""
    files = SparkSession.active().readStream.schema(LOG).option("recursiveFileLookup", "true")
    log = files.option("pathGlobFilter", "*.parquet").format("parquet").load(os.environ["BENCH_LOG"])
    records = log.select(F.from_json(F.col("value").cast("string"), RECORD).alias("r")).select("r.*")
    served = records.filter("status < 500").withWatermark("ts", "10 seconds")
    totals = (F.count("*").alias("requests"), F.sum("bytes").alias("bytes"), F.max("ms").alias("slowest_ms"))
    grouped = served.groupBy(F.window("ts", "10 seconds"), "user").agg(*totals)
    return grouped.selectExpr(
        "window.start AS window_start", "window.end AS window_end", "user", "requests", "bytes", "slowest_ms"
    )
