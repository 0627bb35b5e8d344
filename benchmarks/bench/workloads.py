"""What is measured: the records of a topic, and what the tables made of them must hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F

from bench.baselines import COUNTS, counts, parsed, requests
from bench.feed import TOPIC, Records
from bench.records import EVENT_TIME_PER_BATCH, START, Traffic
from bench.tidemill_batch import TidemillBatch
from tidemill.demo import traffic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The same records for everyone, by the size of a batch, and the one query that says which rows are right.

    `expected` makes of the records of the whole log the rows with these `columns`. Compared are windows that start at
    or after `since`, and that everyone has closed: they end at least `settled` before the end of the event time.
    """

    name: str
    records: Callable[[int], Records]
    expected: Callable[[DataFrame], DataFrame]
    columns: tuple[str, ...]
    topic: str = TOPIC
    settled: timedelta = timedelta(seconds=20)
    since: datetime | None = None

    def compared(self, rows: DataFrame, rounds: int) -> DataFrame:
        """The rows to compare after so many rounds."""
        horizon = START + rounds * EVENT_TIME_PER_BATCH - self.settled
        closed = rows.select(*self.columns).filter(f"window_end <= timestamp '{horizon.isoformat()}'")
        return closed.filter(F.col("window_start") >= F.lit(self.since)) if self.since else closed


BENCH = Workload(
    name="bench", records=lambda size: Traffic(size=size), expected=lambda log: counts(requests(log)), columns=COUNTS
)
"""JSON records of 100 bytes, counted per user and ten seconds."""


class SlidingBatch(TidemillBatch):
    """Windows of an hour that start every minute."""

    pipeline, table = "by_hour", "requests_by_hour"
    pipelines, contracts = HERE / "sliding" / "pipelines", HERE / "sliding" / "data_contracts"


SLIDING = Workload(
    name="sliding",
    records=lambda size: Traffic(size=size),
    expected=lambda log: counts(parsed(log), "1 hour", "1 minute"),
    columns=COUNTS,
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
    user, page, status = (_keyed(counts(requests(log), key=key), key) for key in WIDE_KEYS)
    return user.unionAll(page).unionAll(status)


WIDE = Workload(name="wide", records=lambda size: Traffic(size=size), expected=_wide, columns=WIDE_COLUMNS)


class PageViewsBatch(TidemillBatch):
    """The reference pipeline of the repository, as it is."""

    pipeline, table = "page_views", "page_views_by_minute"
    pipelines, contracts = REPOSITORY / "spark_jobs" / "pipelines", REPOSITORY / "data_contracts"

    def rows(self) -> DataFrame | None:
        return self.published(self.table).withColumn("bytes", F.coalesce("bytes", F.lit(0)))


@dataclass(frozen=True, slots=True)
class AccessLog:
    """Lines of an access log, `size` in each minute: 1 % broken, 0.2 % later than any window waits."""

    size: int

    def batch(self, index: int) -> pa.Table:
        """The lines of minute `index` (from 0): binary columns `key` and `value`, in arrival order."""
        start, span = START + index * EVENT_TIME_PER_BATCH, EVENT_TIME_PER_BATCH
        made = list(traffic.lines(traffic.Traffic(seed=index, records=self.size, start=start, span=span)))
        keys, values = [line.key for line in made], [line.value for line in made]
        return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})


_LINE = r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) \S+" ([1-5]\d\d)(?: (\d+|-) "[^"]*" "[^"]*")?$'
_CLASSES = ("2xx", "3xx", "4xx", "5xx")


def _page_views(log: DataFrame) -> DataFrame:
    """Views of pages without the approximate number of visitors, from lines that a pattern takes apart."""
    text = log.filter("is_valid_utf8(CAST(value AS string))").select(F.col("value").cast("string").alias("line"))
    part = [F.regexp_extract("line", _LINE, number) for number in range(7)]
    hits = text.filter(part[0] != "").select(
        F.try_to_timestamp(part[2], F.lit("dd/MMM/yyyy:HH:mm:ss Z")).alias("ts"),
        F.split(part[4], "[?]")[0].alias("page"),
        part[5].cast("int").alias("status"),
        F.when(part[6].rlike(r"^\d+$"), part[6].cast("bigint")).alias("bytes"),
    )
    known = hits.filter("ts IS NOT NULL AND ts < timestamp '2099-01-01'")
    classes = [F.count_if(F.col("status").substr(1, 1) == kind[0]).alias(f"status_{kind}") for kind in _CLASSES]
    totals = (F.count("*").alias("requests"), F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"))
    grouped = known.groupBy(F.window("ts", "1 minute"), "page").agg(*totals, *classes)
    return grouped.select(F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "*")


PAGE_VIEWS = Workload(
    name="page_views",
    topic="web.access",
    records=AccessLog,
    expected=_page_views,
    columns=("window_start", "window_end", "page", "requests", "bytes", *(f"status_{kind}" for kind in _CLASSES)),
    # The pipeline waits a minute. Which windows of more than an hour ago are closed depends on how batches are cut.
    settled=timedelta(minutes=2),
    since=START - timedelta(hours=1),
)
MORE: tuple[tuple[Workload, Callable[[], TidemillBatch]], ...] = (
    (PAGE_VIEWS, PageViewsBatch),
    (SLIDING, SlidingBatch),
    (WIDE, WideBatch),
)
"""Pipelines beside the one that rivals compute as well."""
