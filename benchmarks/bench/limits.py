"""What one process can do with a round's files and without Spark: DuckDB and Polars, as a practical limit.

Like the bare Spark job they read, parse, filter and aggregate, and write nothing: no plan, no contract, no table.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from bench.baselines import COUNTS, COUNTS_SCHEMA
from bench.contestant import WINDOW, Arena, Delivery
from bench.machine import CORES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEYS = ["window_start", "user"]
_JSON = '{"ts": "TIMESTAMPTZ", "user": "VARCHAR", "status": "INTEGER", "bytes": "BIGINT", "ms": "BIGINT"}'
_RECORD = pl.Struct({"ts": pl.String, "user": pl.String, "status": pl.Int32, "bytes": pl.Int64, "ms": pl.Int64})
_QUERY = f"""
SELECT time_bucket(INTERVAL '{WINDOW}', ts) AS window_start, user, count(*) AS requests,
    sum(bytes)::BIGINT AS bytes, max(ms) AS slowest_ms
FROM (SELECT unnest(from_json_strict(decode(value), '{_JSON}')) FROM read_parquet($files))
WHERE status < 500
GROUP BY ALL
"""


class DuckDb:
    """One DuckDB query over a round's files, with as many threads as the bench has cores.

    It decodes each JSON record once: of four ways to take five fields, that was the fastest.
    """

    name = "duckdb"

    def prepare(self, arena: Arena) -> None:
        self._spark = arena.spark
        self._rounds: list[pl.DataFrame] = []
        self._connection = duckdb.connect(config={"threads": CORES})
        self._connection.execute("SET TimeZone = 'UTC'")

    def round(self, delivery: Delivery) -> float:
        begin = perf_counter()
        found = self._connection.execute(_QUERY, {"files": list(delivery.files)}).to_arrow_table()
        seconds = perf_counter() - begin
        self._rounds.append(kept(self.name, pl.DataFrame(found), delivery))
        return seconds

    def rows(self) -> DataFrame | None:
        return merged(self._spark, self._rounds)


class Polars:
    """One lazy Polars query over a round's files. Its threads are those of the process: one for each core."""

    name = "polars"

    def prepare(self, arena: Arena) -> None:
        self._spark = arena.spark
        self._rounds: list[pl.DataFrame] = []

    def round(self, delivery: Delivery) -> float:
        begin = perf_counter()
        found = _polars_query(delivery.files).collect()
        seconds = perf_counter() - begin
        self._rounds.append(kept(self.name, found, delivery))
        return seconds

    def rows(self) -> DataFrame | None:
        return merged(self._spark, self._rounds)


def _polars_query(files: Sequence[str]) -> pl.LazyFrame:
    value = pl.scan_parquet(list(files)).select(pl.col("value").cast(pl.String).str.json_decode(_RECORD))
    ts = pl.col("ts").str.to_datetime("%Y-%m-%dT%H:%M:%S%.3fZ", time_unit="us", time_zone="UTC")
    window = ts.dt.truncate(f"{WINDOW.split()[0]}s").alias("window_start")
    served = value.unnest("value").filter(pl.col("status") < 500).with_columns(window)
    totals = (pl.len().cast(pl.Int64).alias("requests"), pl.col("bytes").sum(), pl.col("ms").max().alias("slowest_ms"))
    return served.group_by(_KEYS).agg(*totals)


def kept(name: str, rows: pl.DataFrame, delivery: Delivery) -> pl.DataFrame:
    """A round's counts, which are a part of what windows that span rounds hold.

    Raises:
        RuntimeError: they count more than was delivered, or less than nine tenths of it.
    """
    # A fiftieth of the requests fails on the server and is left out.
    if not 0.9 * delivery.records <= rows["requests"].sum() <= delivery.records:
        raise RuntimeError(f"{name} counted {rows['requests'].sum()} records of {delivery.records}")
    return rows


def merged(spark: SparkSession, rounds: Sequence[pl.DataFrame]) -> DataFrame:
    """The counts of all rounds, in the columns of `COUNTS`."""
    totals = (pl.col("requests").sum(), pl.col("bytes").sum(), pl.col("slowest_ms").max())
    rows = pl.concat(list(rounds)).group_by(_KEYS).agg(*totals)
    end = pl.col("window_start").dt.offset_by(f"{WINDOW.split()[0]}s").alias("window_end")
    return spark.createDataFrame(rows.with_columns(end).select(COUNTS).to_pandas(), COUNTS_SCHEMA)
