"""Statements over data frames.

The text of a batch's statements is the same in every batch: what changes from batch to batch (offsets, clock,
watermark, batch id) reaches the rows as data. Spark compiles a statement once, to Java classes that grow faster with
use, and finds them by their text; a watermark written into it would cost 100 ms of compiling in every batch.
"""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

ROWS = "`the rows`"
"""The name of the data frame in the text of a statement."""


_RECORDS_OF_A_TASK = 20_000
"""Up to so many records one task is faster than several and a shuffle: it decodes as many in 20 ms."""

_ROWS_OF_A_TASK = 60_000
"""The same of rows that are decoded already: it merges as many in 60 ms."""


def in_few_tasks(frame: DataFrame, records: int) -> DataFrame:
    """A frame of records, in one task when there are few."""
    return frame.coalesce(1) if records <= _RECORDS_OF_A_TASK else frame


def of_driver(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows of the driver, in one task when there are few: a task carries its rows, and many would fill the heap."""
    frame = session.createDataFrame(rows)
    return frame.coalesce(1) if rows.num_rows <= _ROWS_OF_A_TASK else frame


def query(session: SparkSession, text: str, rows: DataFrame) -> DataFrame:
    """What a statement over `ROWS` gives for these rows. One call into Spark, however long the statement.

    An `Observation` of the rows never comes to an end: Spark looks for it in the statement as it was written.
    """
    template = text.replace("{", "{{").replace("}", "}}").replace(ROWS, "{rows}")
    return session.sql(template, rows=rows)
