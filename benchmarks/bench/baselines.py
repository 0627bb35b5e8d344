"""What Tidemill is measured against: Spark's own micro-batches, and the least that any of them must do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from delta.tables import DeltaTable
from pyspark.sql import functions as F

from bench.contestant import DELAY, WINDOW, Arena, Contestant, Delivery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LOG_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
RECORD_SCHEMA = "ts timestamp, user string, page string, status int, bytes bigint, ms bigint"
COUNTS_SCHEMA = (
    "window_start timestamp, window_end timestamp, user string, requests bigint, bytes bigint, slowest_ms bigint"
)
COUNTS = ("window_start", "window_end", "user", "requests", "bytes", "slowest_ms")
LONGEST_ROUND = timedelta(minutes=5)


def requests(log: DataFrame) -> DataFrame:
    """The records of a log, parsed by Spark, without those that failed on the server."""
    return parsed(log).filter("status < 500")


def parsed(log: DataFrame) -> DataFrame:
    """The records of a log, parsed by Spark."""
    return log.select(F.from_json(F.col("value").cast("string"), RECORD_SCHEMA).alias("r")).select("r.*")


def counts(rows: DataFrame, window: str = WINDOW, slide: str | None = None, *, key: str = "user") -> DataFrame:
    """Requests, bytes and the slowest answer per key and window."""
    grouped = rows.groupBy(F.window("ts", window, slide), key)
    totals = grouped.agg(F.count("*").alias("requests"), F.sum("bytes").alias("bytes"), F.max("ms").alias("slowest_ms"))
    return totals.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), key, *COUNTS[3:]
    )


class Floor:
    """One plain Spark job over the round's files: read, parse, filter, aggregate. Nothing is written."""

    name = "floor"

    def prepare(self, arena: Arena) -> None:
        self._spark = arena.spark

    def round(self, delivery: Delivery) -> float:
        begin = time.perf_counter()
        log = self._spark.read.schema(LOG_SCHEMA).parquet(*delivery.files)
        counts(requests(log)).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin

    def rows(self) -> DataFrame | None:
        return None


class StateStore(StrEnum):
    """Where Structured Streaming keeps open windows; the values are class names in Spark's package."""

    HDFS = "HDFSBackedStateStoreProvider"
    ROCKSDB = "RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Settings of Structured Streaming that most jobs leave alone, and what they save here.

    `empty_batches`: after the data, a second micro-batch that only moves the watermark; in update mode it
    changes no row, yet costs a MERGE. `snapshot_partitions`: tasks for reading the log of a Delta table.
    `adaptive`: planning stage by stage, which small batches are better without.
    """

    empty_batches: bool
    snapshot_partitions: int
    adaptive: bool


STOCK = Tuning(empty_batches=True, snapshot_partitions=50, adaptive=True)
"""Everything as Spark and Delta come: reading the log of a Delta table in 50 tasks takes seconds on two cores."""

PLAIN = Tuning(empty_batches=True, snapshot_partitions=2, adaptive=True)
"""As many partitions as cores, everywhere, and nothing else."""

BEST = Tuning(empty_batches=False, snapshot_partitions=2, adaptive=False)
"""Whatever was found to make small batches faster."""

_SUFFIXES = {PLAIN: "", BEST: "_tuned", STOCK: "_stock"}


@dataclass
class AvailableNow:
    """Structured Streaming as a scheduled job runs it: started for each round from the same checkpoint.

    `trigger(availableNow=True)`, update mode, MERGE in `foreachBatch` into a Delta table by window and
    user, with transaction ids so that a repeated micro-batch is skipped. No audit.
    """

    store: StateStore
    tuning: Tuning

    @property
    def name(self) -> str:
        return f"available_now_{self.store.name.lower()}{_SUFFIXES[self.tuning]}"

    def prepare(self, arena: Arena) -> None:
        self._spark = self._session(arena.spark)
        self._files = arena.log.as_posix()
        self._table = (arena.lake / "counts").as_posix()
        self._checkpoint = (arena.lake / "checkpoint").as_posix()
        empty = self._spark.createDataFrame([], COUNTS_SCHEMA)
        empty.write.format("delta").save(self._table)

    def _session(self, spark: SparkSession) -> SparkSession:
        session = spark.newSession()
        package = "org.apache.spark.sql.execution.streaming.state"
        session.conf.set("spark.sql.streaming.stateStore.providerClass", f"{package}.{self.store.value}")
        session.conf.set("spark.sql.shuffle.partitions", "2")
        empty = str(self.tuning.empty_batches).lower()
        session.conf.set("spark.sql.streaming.noDataMicroBatches.enabled", empty)
        session.conf.set("spark.databricks.delta.snapshotPartitions", str(self.tuning.snapshot_partitions))
        session.conf.set("spark.sql.adaptive.enabled", str(self.tuning.adaptive).lower())
        return session

    def round(self, delivery: Delivery) -> float:
        begin = time.perf_counter()
        query = self._start()
        if not query.awaitTermination(LONGEST_ROUND // timedelta(seconds=1)):
            query.stop()
            raise RuntimeError(f"{self.name} did not end within {LONGEST_ROUND}")
        seconds = time.perf_counter() - begin
        read = sum(progress.numInputRows for progress in query.recentProgress)
        if read != delivery.records:
            raise RuntimeError(f"{self.name} read {read} records of {delivery.records}")
        return seconds

    def _start(self) -> StreamingQuery:
        source = self._spark.readStream.schema(LOG_SCHEMA).option("recursiveFileLookup", "true")
        log = source.option("pathGlobFilter", "*.parquet").parquet(self._files)
        updates = counts(requests(log).withWatermark("ts", DELAY))
        writer = updates.writeStream.outputMode("update").option("checkpointLocation", self._checkpoint)
        return writer.foreachBatch(self._merge).trigger(availableNow=True).start()

    def _merge(self, updates: DataFrame, batch_id: int) -> None:
        conf = updates.sparkSession.conf
        conf.set("spark.databricks.delta.write.txnAppId", self.name)
        conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        try:
            table = DeltaTable.forPath(updates.sparkSession, self._table).alias("t")
            merge = table.merge(updates.alias("u"), "t.window_start = u.window_start AND t.user = u.user")
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        finally:
            conf.unset("spark.databricks.delta.write.txnAppId")
            conf.unset("spark.databricks.delta.write.txnVersion")

    def rows(self) -> DataFrame | None:
        return self._spark.read.format("delta").load(self._table)


def baselines(*, stock: bool = False) -> tuple[Contestant, ...]:
    """Fresh ones, for one series of rounds; `stock` adds Structured Streaming with every setting as it comes."""
    tunings = (PLAIN, BEST, STOCK) if stock else (PLAIN, BEST)
    return (Floor(), *(AvailableNow(store, tuning) for tuning in tunings for store in StateStore))
