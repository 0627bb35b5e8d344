"""The workloads: the bench's own, and the pipelines beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from bench.access_log import PAGE_VIEWS
from bench.contestant import DELAY, WINDOW
from bench.records import Traffic
from bench.tidemill_batch import TidemillBatch
from bench.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RECORD_SCHEMA = "ts timestamp, user string, page string, status int, bytes bigint, ms bigint"
COUNTS = ("window_start", "window_end", "user", "requests", "bytes", "slowest_ms")
TOTALS = COUNTS[3:]


def parsed(log: DataFrame) -> DataFrame:
    """The records of a log, parsed by Spark. Nobody has a late one: the traffic is out of order by less than that."""
    rows = log.select(F.from_json(F.col("value").cast("string"), RECORD_SCHEMA).alias("r")).select("r.*")
    return rows.withWatermark("ts", DELAY)


def requests(log: DataFrame) -> DataFrame:
    """The parsed records without those that failed on the server."""
    return parsed(log).filter("status < 500")


def counts(
    rows: DataFrame, window: str = WINDOW, slide: str | None = None, *, keys: tuple[str, ...] = ("user",)
) -> DataFrame:
    """Requests, bytes and the slowest answer per key and window."""
    grouped = rows.groupBy(F.window("ts", window, slide), *keys)
    totals = grouped.agg(F.count("*").alias("requests"), F.sum("bytes").alias("bytes"), F.max("ms").alias("slowest_ms"))
    return totals.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), *keys, *TOTALS
    )


_TYPES = {"ts": "TIMESTAMPTZ", "user": "VARCHAR", "status": "INTEGER", "bytes": "BIGINT", "ms": "BIGINT"}


def _decoded(types: Mapping[str, str]) -> str:
    """Each record is decoded once, and only what is asked for: of four ways to do it, that was the fastest."""
    return f"(SELECT unnest(from_json_strict(decode(value), '{json.dumps(types)}')) FROM read_parquet($files))"


_TOTALS = "count(*) AS requests, sum(bytes)::BIGINT AS bytes, max(ms) AS slowest_ms"

BENCH = Workload(
    name="bench",
    records=lambda size: Traffic(size=size),
    rows=lambda log: counts(requests(log)),
    columns=COUNTS,
    duckdb=f"""
SELECT time_bucket(INTERVAL '{WINDOW}', ts) AS window_start, window_start + INTERVAL '{WINDOW}' AS window_end, user,
    {_TOTALS}
FROM {_decoded(_TYPES)}
WHERE status < 500
GROUP BY ALL
""",
    added=("requests", "bytes"),
    largest=("slowest_ms",),
)
"""JSON records of 100 bytes, counted per user and ten seconds."""


class SlidingBatch(TidemillBatch):
    """Windows of an hour that start every minute."""

    pipeline, table = "by_hour", "requests_by_hour"
    pipelines, contracts = HERE / "sliding" / "pipelines", HERE / "sliding" / "data_contracts"


SLIDING = Workload(
    name="sliding",
    # The first batch also has the hour before, so that windows are full from then on.
    records=lambda size: Traffic(size=size, before=timedelta(hours=1)),
    rows=lambda log: counts(parsed(log), "1 hour", "1 minute"),
    on_close=True,
    columns=COUNTS,
    duckdb=f"""
WITH minutes AS (
    SELECT time_bucket(INTERVAL '1 minute', ts) AS minute, user, {_TOTALS}
    FROM {_decoded(_TYPES)}
    GROUP BY ALL
)
SELECT minute - to_minutes(back) AS window_start, window_start + INTERVAL '1 hour' AS window_end, user,
    sum(requests)::BIGINT AS requests, sum(bytes)::BIGINT AS bytes, max(slowest_ms) AS slowest_ms
FROM minutes, range(60) AS panes(back)
GROUP BY ALL
""",
    added=("requests", "bytes"),
    largest=("slowest_ms",),
)


class WideBatch(TidemillBatch):
    """Three tables of one input."""

    pipeline = "wide"
    pipelines, contracts = HERE / "wide" / "pipelines", HERE / "wide" / "data_contracts"

    def rows(self) -> DataFrame | None:
        user, page, status = (_keyed(self.published(f"requests_by_{key}"), key) for key in WIDE_KEYS)
        return user.unionAll(page).unionAll(status)


WIDE_KEYS = ("user", "page", "status")
WIDE_COLUMNS = ("name", "key", *(name for name in COUNTS if name != "user"))


def _keyed(rows: DataFrame, key: str) -> DataFrame:
    named = rows.withColumn("name", F.lit(key)).withColumn("key", F.col(key).cast("string"))
    return named.select(*WIDE_COLUMNS)


def _wide(log: DataFrame) -> DataFrame:
    """All three tables as one, by the name of the key: each record is decoded once, and counted three times."""
    keys = [F.struct(F.lit(key).alias("name"), F.col(key).cast("string").alias("key")) for key in WIDE_KEYS]
    each = requests(log).select("ts", "bytes", "ms", F.inline(F.array(*keys)))
    return counts(each, keys=("name", "key"))


WIDE = Workload(
    name="wide",
    records=lambda size: Traffic(size=size),
    rows=_wide,
    columns=WIDE_COLUMNS,
    duckdb=f"""
SELECT CASE 0 WHEN grouping(user) THEN 'user' WHEN grouping(page) THEN 'page' ELSE 'status' END AS name,
    coalesce(user, page, status::VARCHAR) AS key,
    window_start, window_start + INTERVAL '{WINDOW}' AS window_end, {_TOTALS}
FROM (SELECT *, time_bucket(INTERVAL '{WINDOW}', ts) AS window_start FROM {_decoded({**_TYPES, "page": "VARCHAR"})})
WHERE status < 500
GROUP BY GROUPING SETS ((window_start, user), (window_start, page), (window_start, status))
""",
    added=("requests", "bytes"),
    largest=("slowest_ms",),
)


class PageViewsBatch(TidemillBatch):
    """The reference pipeline of the repository, as it is."""

    pipeline, table = "page_views", "page_views_by_minute"
    pipelines, contracts = REPOSITORY / "spark_jobs" / "pipelines", REPOSITORY / "data_contracts"

    def rows(self) -> DataFrame | None:
        return self.published(self.table).withColumn("bytes", F.coalesce("bytes", F.lit(0)))


MORE: tuple[tuple[Workload, Callable[[], TidemillBatch]], ...] = (
    (PAGE_VIEWS, PageViewsBatch),
    (SLIDING, SlidingBatch),
    (WIDE, WideBatch),
)
"""The other pipelines, each with the contestant that runs it in Tidemill."""
