"""The workload of the reference pipeline `page_views`: lines of an access log, seven aggregates with a sketch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import functions as F

from bench.records import EVENT_TIME_PER_BATCH, START
from bench.workload import Workload
from tidemill.demo import traffic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATENESS = "61 minutes"
"""How late a line may be: the delay of the pipeline and the lateness that its windows allow."""


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


LINE = r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) (\S+) \S+" ([1-5]\d\d)(?: (\d+|-) "[^"]*" "[^"]*")?$'
CLASSES = ("2xx", "3xx", "4xx", "5xx")
NEVER = "2099-01-01"
"""Lines from this day on are from the future, and no window of theirs is made."""


def _page_views(log: DataFrame) -> DataFrame:
    """Views of pages, from lines that a pattern takes apart."""
    text = log.filter("is_valid_utf8(CAST(value AS string))").select(F.col("value").cast("string").alias("line"))
    # The pattern is matched once a line: Spark would match it again for each column, and no filter gets below explode.
    parts = F.split(F.regexp_replace("line", LINE, "$1\x01$2\x01$4\x01$5\x01$6"), "\x01")
    lines = text.select(F.explode(F.array(parts)).alias("part")).filter(F.size("part") == 5)
    part = [F.col("part")[number] for number in range(5)]
    hits = lines.select(
        F.try_to_timestamp(part[1], F.lit("dd/MMM/yyyy:HH:mm:ss Z")).alias("ts"),
        part[0].alias("client"),
        F.split(part[2], "[?]")[0].alias("page"),
        part[3].cast("int").alias("status"),
        F.expr("try_cast(part[4] AS bigint)").alias("bytes"),
    )
    known = hits.filter(f"ts IS NOT NULL AND ts < timestamp '{NEVER}'").withWatermark("ts", LATENESS)
    totals = (F.count("*").alias("requests"), F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"))
    classes = [F.count_if(F.expr(f"status div 100 = {kind[0]}")).alias(f"status_{kind}") for kind in CLASSES]
    visitors = F.approx_count_distinct("client").alias("visitors")
    grouped = known.groupBy(F.window("ts", "1 minute"), "page").agg(*totals, *classes, visitors)
    start, end = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
    return grouped.select(start, end, "page", "requests", "bytes", *(f"status_{kind}" for kind in CLASSES), "visitors")


_DUCKDB_CLASSES = ",\n    ".join(f"count_if(hit.status[1] = '{kind[0]}')::BIGINT AS status_{kind}" for kind in CLASSES)
_DUCKDB = f"""
SELECT time_bucket(INTERVAL '1 minute', ts) AS window_start, window_start + INTERVAL '1 minute' AS window_end,
    split_part(hit.path, '?', 1) AS page, count(*) AS requests,
    coalesce(sum(try_cast(hit.bytes AS BIGINT)), 0)::BIGINT AS bytes,
    {_DUCKDB_CLASSES},
    approx_count_distinct(hit.client) AS visitors
FROM (
    SELECT hit, try_strptime(hit.at, '%d/%b/%Y:%H:%M:%S %z')::TIMESTAMPTZ AS ts
    FROM (
        SELECT regexp_extract(try(decode(value)), '{LINE}',
            ['client', 'at', 'method', 'path', 'status', 'bytes']) AS hit
        FROM read_parquet($files)
    )
)
WHERE ts IS NOT NULL AND ts < TIMESTAMPTZ '{NEVER} 00:00:00+00'
GROUP BY ALL
"""

PAGE_VIEWS = Workload(
    name="page_views",
    topic="web.access",
    records=AccessLog,
    rows=_page_views,
    # Not the visitors: each engine estimates their number in its own way.
    columns=("window_start", "window_end", "page", "requests", "bytes", *(f"status_{kind}" for kind in CLASSES)),
    duckdb=_DUCKDB,
    added=("requests", "bytes", *(f"status_{kind}" for kind in CLASSES)),
    # The pipeline waits a minute. Which windows of more than an hour ago are closed depends on how batches are cut.
    settled=timedelta(minutes=2),
    since=START - timedelta(hours=1),
    sizes=(20_000,),
)
