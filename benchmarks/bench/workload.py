"""What everyone computes in a series: which records, which tables of them, and which rows are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from bench.feed import TOPIC, Records
from bench.records import EVENT_TIME_PER_BATCH, START

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The same records for everyone, and the rows that everyone makes of them.

    Attributes:
        name: of the pipeline.
        records: the traffic, by the records of a batch.
        rows: computes the rows from the records of a log. It works for a stream, too: it sets the watermark.
        columns: of the rows, those that are compared.
        duckdb: the query of DuckDB that gives these columns for the files `$files` of a round.
        added: the columns that are added up where rows of several rounds become one.
        largest: the columns of which the largest counts then. All others say which row is which.
        on_close: whether rows of a window are published only when it has closed.
        topic: where the records lie.
        settled: only windows are compared that end so much before the end of the event time: everyone has closed them.
        since: only windows that start then or later are compared; None compares all.
        sizes: records of a batch that are measured beside those of the run.
    """

    name: str
    records: Callable[[int], Records]
    rows: Callable[[DataFrame], DataFrame]
    columns: tuple[str, ...]
    duckdb: str
    added: tuple[str, ...]
    largest: tuple[str, ...] = ()
    on_close: bool = False
    topic: str = TOPIC
    settled: timedelta = timedelta(seconds=20)
    since: datetime | None = None
    sizes: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say which row is which."""
        return tuple(name for name in self.columns if name not in (*self.added, *self.largest))

    def compared(self, rows: DataFrame, rounds: int) -> DataFrame:
        """The rows to compare after so many rounds."""
        horizon = START + rounds * EVENT_TIME_PER_BATCH - self.settled
        closed = rows.select(*self.columns).filter(f"window_end <= timestamp '{horizon.isoformat()}'")
        return closed.filter(F.col("window_start") >= F.lit(self.since)) if self.since else closed


def empty_log(spark: SparkSession) -> DataFrame:
    """A log without records."""
    return spark.createDataFrame([], LOG_SCHEMA)
