"""What one process can do with a round's files and without Spark: DuckDB and Polars, as a practical limit.

Like the bare Spark job they read, parse, filter and aggregate, and write nothing: no plan, no contract, no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from bench.contestant import WINDOW, Arena, Delivery
from bench.machine import CORES
from bench.workload import Workload, empty_log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RECORD = pl.Struct({"ts": pl.String, "user": pl.String, "status": pl.Int32, "bytes": pl.Int64, "ms": pl.Int64})


class DuckDb:
    """One DuckDB query over a round's files, with as many threads as the bench has cores."""

    name = "duckdb"

    def prepare(self, arena: Arena) -> None:
        self._spark, self._workload = arena.spark, arena.workload
        self._rounds: list[pl.DataFrame] = []
        self._connection = duckdb.connect(config={"threads": CORES})
        self._connection.execute("SET TimeZone = 'UTC'")

    def round(self, delivery: Delivery) -> float:
        begin = perf_counter()
        found = self._connection.execute(self._workload.duckdb, {"files": list(delivery.files)}).to_arrow_table()
        seconds = perf_counter() - begin
        self._rounds.append(pl.DataFrame(found))
        return seconds

    def rows(self) -> DataFrame | None:
        return merged(self._spark, self._workload, self._rounds)


class Polars:
    """One lazy Polars query over a round's files. Its threads are those of the process: one for each core.

    It has a query for the bench's own pipeline only.
    """

    name = "polars"

    def prepare(self, arena: Arena) -> None:
        self._spark, self._workload = arena.spark, arena.workload
        self._rounds: list[pl.DataFrame] = []

    def round(self, delivery: Delivery) -> float:
        begin = perf_counter()
        found = _polars_query(delivery.files).collect()
        seconds = perf_counter() - begin
        self._rounds.append(with_end(found))
        return seconds

    def rows(self) -> DataFrame | None:
        return merged(self._spark, self._workload, self._rounds)


def _polars_query(files: Sequence[str]) -> pl.LazyFrame:
    value = pl.scan_parquet(list(files)).select(pl.col("value").cast(pl.String).str.json_decode(_RECORD))
    ts = pl.col("ts").str.to_datetime("%Y-%m-%dT%H:%M:%S%.3fZ", time_unit="us", time_zone="UTC")
    window = ts.dt.truncate(f"{WINDOW.split()[0]}s").alias("window_start")
    served = value.unnest("value").filter(pl.col("status") < 500).with_columns(window)
    totals = (pl.len().cast(pl.Int64).alias("requests"), pl.col("bytes").sum(), pl.col("ms").max().alias("slowest_ms"))
    return served.group_by("window_start", "user").agg(*totals)


def with_end(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of windows of the bench's own pipeline, with the end of each."""
    return rows.with_columns(pl.col("window_start").dt.offset_by(f"{WINDOW.split()[0]}s").alias("window_end"))


def merged(spark: SparkSession, workload: Workload, rounds: Sequence[pl.DataFrame]) -> DataFrame | None:
    """The rows of all rounds, if there were any: a round has a part of what windows that span rounds hold."""
    if not rounds:
        return None
    totals = (pl.col(workload.added).sum(), pl.col(workload.largest).max())
    parts = pl.concat([rows.select(workload.columns) for rows in rounds])
    rows = parts.group_by(workload.keys).agg(*totals).select(workload.columns)
    return spark.createDataFrame(rows.to_pandas(), workload.rows(empty_log(spark)).select(*workload.columns).schema)
