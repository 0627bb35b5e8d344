"""Statements over data frames.

The text of a statement is the same in every batch: values that change (offsets, clock, watermark, batch id) reach the
rows as data. Spark compiles a statement once, to Java classes that get faster with use, and finds them by their text. A
watermark in the text would cost 100 ms of compiling in every batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemill.core.sql.text import quoted

ROWS = "`the rows`"
"""The name of the data frame in the text of a statement."""

_OTHER = "other "

_RECORDS_OF_A_TASK = 20_000
"""Up to this many records, one task is faster than several tasks and a shuffle: it decodes them in 20 ms."""

_ROWS_OF_A_TASK = 60_000
"""Up to this many decoded rows, one task is faster: it merges them in 60 ms."""


def in_few_tasks(frame: DataFrame, records: int) -> DataFrame:
    """A frame of records, in one task when there are few."""
    return frame.coalesce(1) if records <= _RECORDS_OF_A_TASK else frame


def of_driver(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows of the driver as a frame; few rows in one task: a task carries its rows, and many would fill its heap."""
    frame = session.createDataFrame(rows)
    return frame.coalesce(1) if rows.num_rows <= _ROWS_OF_A_TASK else frame


def of_columns(frame: DataFrame, columns: StructType) -> DataFrame:
    """The same frame, which has these columns: a Connect client need not ask its server, which analyzes the plan."""
    # Other clients do not look at this attribute.
    vars(frame)["_cached_schema"] = columns
    return frame


def query(session: SparkSession, text: str, rows: DataFrame) -> DataFrame:
    """The result of a statement over `ROWS` for these rows; one call into Spark, however long the statement is.

    Do not pass rows with an `Observation`: it never completes, because Spark looks for it in the statement's own text.
    """
    template = text.replace("{", "{{").replace("}", "}}").replace(ROWS, "{rows}")
    found = session.sql(template, rows=rows)
    # A Connect client asks its server before it observes a frame, and no frame of a batch is a stream.
    vars(found)["isStreaming"] = False
    return found


def queries(session: SparkSession, texts: Sequence[str], rows: DataFrame) -> DataFrame:
    """The result of several statements, each over the rows of the one before."""
    return reduce(lambda found, text: query(session, text, found), texts, rows)


def having_key(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows whose key some of `others` have; null agrees with null."""
    return _by_key(rows, others, keys, "left_semi")


def without_key(rows: DataFrame, others: DataFrame, keys: Sequence[str], *where: Column) -> DataFrame:
    """The rows without those whose key some of `others` have, and for which all of `where` are true.

    Null agrees with null.
    """
    return _by_key(rows, others, keys, "left_anti", *where)


def _by_key(rows: DataFrame, others: DataFrame, keys: Sequence[str], how: str, *where: Column) -> DataFrame:
    wanted = others.selectExpr(*(f"{quoted(k)} AS {quoted(_OTHER + k)}" for k in keys)).distinct()
    same = [F.expr(f"{quoted(k)} <=> {quoted(_OTHER + k)}") for k in keys]
    return rows.join(wanted, reduce(Column.__and__, [*same, *where]), how)
