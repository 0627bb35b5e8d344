"""What Tidemill is measured against: Spark's own micro-batches, and the least that any of them must do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from delta.tables import DeltaTable

from bench.contestant import Arena, Contestant, Delivery
from bench.workload import LOG_SCHEMA, Table, empty_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LONGEST_ROUND = timedelta(minutes=5)


class Floor:
    """One plain Spark job over the round's files: read, parse, filter, aggregate. Nothing is written."""

    name = "floor"

    def prepare(self, arena: Arena) -> None:
        self._spark, self._workload = arena.spark, arena.workload

    def round(self, delivery: Delivery) -> float:
        begin = time.perf_counter()
        log = self._spark.read.schema(LOG_SCHEMA).parquet(*delivery.files)
        self._workload.expected(log).write.format("noop").mode("overwrite").save()
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
    """Structured Streaming as a scheduled job runs it: started for each round from the same checkpoints.

    For each table of the workload a query with `trigger(availableNow=True)`, update mode, and MERGE in `foreachBatch`
    into a Delta table, with transaction ids so that a repeated micro-batch is skipped. All queries run at the same
    time. No audit.
    """

    store: StateStore
    tuning: Tuning

    @property
    def name(self) -> str:
        return f"available_now_{self.store.name.lower()}{_SUFFIXES[self.tuning]}"

    def prepare(self, arena: Arena) -> None:
        self._spark, self._workload = self._session(arena.spark), arena.workload
        self._files, self._lake = arena.log.as_posix(), arena.lake
        for table in self._workload.tables:
            table.rows(empty_log(self._spark)).write.format("delta").save(self._path(table))

    def _path(self, table: Table) -> str:
        return (self._lake / table.name).as_posix()

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
        queries = [self._start(table) for table in self._workload.tables]
        for query in queries:
            if not query.awaitTermination(LONGEST_ROUND // timedelta(seconds=1)):
                query.stop()
                raise RuntimeError(f"{self.name} did not end within {LONGEST_ROUND}")
        seconds = time.perf_counter() - begin
        for query in queries:
            read = sum(progress.numInputRows for progress in query.recentProgress)
            if read != delivery.records:
                raise RuntimeError(f"{self.name} read {read} records of {delivery.records}")
        return seconds

    def _start(self, table: Table) -> StreamingQuery:
        source = self._spark.readStream.schema(LOG_SCHEMA).option("recursiveFileLookup", "true")
        log = source.option("pathGlobFilter", "*.parquet").parquet(self._files)
        checkpoint = (self._lake / "checkpoints" / table.name).as_posix()
        writer = table.rows(log).writeStream.outputMode("update").option("checkpointLocation", checkpoint)
        return writer.foreachBatch(partial(self._merge, table)).trigger(availableNow=True).start()

    def _merge(self, table: Table, updates: DataFrame, batch_id: int) -> None:
        # Spark gives the session of each query settings of its own.
        conf = updates.sparkSession.conf
        conf.set("spark.databricks.delta.write.txnAppId", f"{self.name}-{table.name}")
        conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        try:
            target = DeltaTable.forPath(updates.sparkSession, self._path(table)).alias("t")
            same = " AND ".join(f"t.{key} = u.{key}" for key in ("window_start", *table.keys))
            merge = target.merge(updates.alias("u"), same)
            merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        finally:
            conf.unset("spark.databricks.delta.write.txnAppId")
            conf.unset("spark.databricks.delta.write.txnVersion")

    def rows(self) -> DataFrame | None:
        paths = map(self._path, self._workload.tables)
        return self._workload.together([self._spark.read.format("delta").load(path) for path in paths])


def baselines(*, stock: bool = False) -> tuple[Contestant, ...]:
    """Fresh ones, for one series of rounds; `stock` adds Structured Streaming with every setting as it comes."""
    tunings = (PLAIN, BEST, STOCK) if stock else (PLAIN, BEST)
    return (Floor(), *(AvailableNow(store, tuning) for tuning in tunings for store in StateStore))


def few_baselines() -> tuple[Contestant, ...]:
    """Fresh ones for a pipeline beside the bench's: of Structured Streaming, the state store that is faster there."""
    return (Floor(), *(AvailableNow(StateStore.HDFS, tuning) for tuning in (PLAIN, BEST)))
