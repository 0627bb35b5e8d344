"""What everyone computes in a series: which records, which tables of them, and which rows are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench.feed import TOPIC, Records
from bench.records import EVENT_TIME_PER_BATCH, START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_SCHEMA = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestampType int, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of windows.

    `rows` makes it of the records of a log, of a stream with its watermark as well. `keys` say which row is which.
    """

    name: str
    keys: tuple[str, ...]
    rows: Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The same records for everyone, by the size of a batch, and the tables that they make of them.

    Of the rows of all tables together, these `columns` are compared, in windows that start at or after `since`, and
    that everyone has closed: they end at least `settled` before the end of the event time. `sizes` are measured beside
    those of the run. `duckdb` makes the columns of a round's `$files`; those in `added` and `largest` make one row of
    the rows of several rounds.
    """

    name: str
    records: Callable[[int], Records]
    tables: tuple[Table, ...]
    columns: tuple[str, ...]
    duckdb: str
    added: tuple[str, ...]
    largest: tuple[str, ...] = ()
    topic: str = TOPIC
    settled: timedelta = timedelta(seconds=20)
    since: datetime | None = None
    sizes: tuple[int, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that say which row is which."""
        return tuple(name for name in self.columns if name not in (*self.added, *self.largest))

    def expected(self, log: DataFrame) -> DataFrame:
        """The rows of all tables, by one query over the records of the whole log."""
        return self.together([table.rows(log) for table in self.tables])

    def together(self, tables: list[DataFrame]) -> DataFrame:
        """The columns that are compared, of the rows of each table."""
        return reduce(DataFrame.unionAll, (rows.select(*self.columns) for rows in tables))

    def compared(self, rows: DataFrame, rounds: int) -> DataFrame:
        """The rows to compare after so many rounds."""
        horizon = START + rounds * EVENT_TIME_PER_BATCH - self.settled
        closed = rows.select(*self.columns).filter(f"window_end <= timestamp '{horizon.isoformat()}'")
        return closed.filter(F.col("window_start") >= F.lit(self.since)) if self.since else closed


def empty_log(spark: SparkSession) -> DataFrame:
    """A log without records."""
    return spark.createDataFrame([], LOG_SCHEMA)
