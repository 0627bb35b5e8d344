"""What Tidemill is measured against: Spark's own micro-batches, and the least that any of them must do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from delta.tables import DeltaTable

from bench.contestant import Arena, Contestant, Delivery
from bench.workload import LOG_SCHEMA, empty_log

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
        self._workload.rows(log).write.format("noop").mode("overwrite").save()
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

    `trigger(availableNow=True)`, and MERGE in `foreachBatch` into a Delta table, with transaction ids so that a
    repeated micro-batch is skipped. No audit. It publishes what a micro-batch has updated, or, where the workload
    publishes closed windows, those (`append`): then the empty micro-batch that closes them is not left out.
    """

    store: StateStore
    tuning: Tuning

    @property
    def name(self) -> str:
        return f"available_now_{self.store.name.lower()}{_SUFFIXES[self.tuning]}"

    def prepare(self, arena: Arena) -> None:
        self._workload, self._files = arena.workload, arena.log.as_posix()
        self._spark = self._session(arena.spark)
        self._table, self._checkpoint = (arena.lake / "counts").as_posix(), (arena.lake / "checkpoint").as_posix()
        self._workload.rows(empty_log(self._spark)).write.format("delta").save(self._table)

    def _session(self, spark: SparkSession) -> SparkSession:
        session = spark.newSession()
        package = "org.apache.spark.sql.execution.streaming.state"
        session.conf.set("spark.sql.streaming.stateStore.providerClass", f"{package}.{self.store.value}")
        session.conf.set("spark.sql.shuffle.partitions", "2")
        empty = str(self.tuning.empty_batches or self._workload.on_close).lower()
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

    def _source(self) -> DataFrame:
        source = self._spark.readStream.schema(LOG_SCHEMA).option("recursiveFileLookup", "true")
        return source.option("pathGlobFilter", "*.parquet").parquet(self._files)

    def _start(self) -> StreamingQuery:
        rows = self._workload.rows(self._source())
        mode = "append" if self._workload.on_close else "update"
        writer = rows.writeStream.outputMode(mode).option("checkpointLocation", self._checkpoint)
        return writer.foreachBatch(self._merge).trigger(availableNow=True).start()

    def _merge(self, updates: DataFrame, batch_id: int) -> None:
        conf = updates.sparkSession.conf
        conf.set("spark.databricks.delta.write.txnAppId", self.name)
        conf.set("spark.databricks.delta.write.txnVersion", str(batch_id))
        try:
            table = DeltaTable.forPath(updates.sparkSession, self._table).alias("t")
            same = " AND ".join(f"t.{key} = u.{key}" for key in self._workload.keys if key != "window_end")
            merge = table.merge(updates.alias("u"), same)
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


def few_baselines() -> tuple[Contestant, ...]:
    """Fresh ones for the other pipelines: Structured Streaming with the store that was faster on the bench's own."""
    return (Floor(), *(AvailableNow(StateStore.HDFS, tuning) for tuning in (PLAIN, BEST)))
