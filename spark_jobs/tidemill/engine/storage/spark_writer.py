"""Rows that stay on Spark's executors: too many for the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from tidemill.core.contract.reasons import sort_expression
from tidemill.core.contract.schema import Field, Scalar, ddl, spark_type
from tidemill.core.plan.slices import SliceSet
from tidemill.core.sql.text import quoted, renamed
from tidemill.engine.spark.query import query
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.chains import END, FIRES, GONE, KIND, OPEN, START, Chain, Chained
from tidemill.engine.storage.row_writers import Apart, Encode
from tidemill.engine.storage.spread import Spread
from tidemill.tables.arrow_types import data_type, schema_fields
from tidemill.tables.create import ensure_table
from tidemill.tables.handles import newest
from tidemill.tables.interface import TableSpec
from tidemill.tables.spark import SparkTable


class SparkWriter:
    """Rows are cached DataFrames on the executors; Spark writes them."""

    name = "spark"

    def __init__(self, spark: Spark, before_job: Callable[[], None] = lambda: None) -> None:
        self.spark, self.before_job = spark, before_job
        self._cached: list[DataFrame] = []

    @property
    def session(self) -> SparkSession:
        """The session of its Spark."""
        return self.spark.session

    def stage(self, frame: DataFrame) -> tuple[DataFrame, int]:  # noqa: D102
        cached = self.cache(frame)
        return cached, cached.count()

    def cache(self, frame: DataFrame) -> DataFrame:
        """The rows, which the first job computes that needs them; they are kept until `release`."""
        self._cached.append(frame.persist())
        return self._cached[-1]

    def frame(self, parts: Sequence[DataFrame]) -> DataFrame:  # noqa: D102
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part.select(*whole.columns))
        return whole

    def spread(self, parts: Sequence[DataFrame], spread: Spread) -> DataFrame:  # noqa: D102
        return query(self.session, spread.text, self.stamped(self.frame(parts), spread.bounds))

    def chained(self, parts: Sequence[DataFrame], chain: Chain) -> Chained[DataFrame]:  # noqa: D102
        rows = self.frame(parts)
        types = {START: Scalar.LONG, END: Scalar.LONG, KIND: Scalar.INTEGER}
        fields = (*self.fields(rows), *(Field(name=name, type=of) for name, of in types.items()))
        by_key = rows.repartition(*map(quoted, chain.keys)) if chain.keys else rows.coalesce(1)
        found = self.cache(by_key.mapInArrow(_plain(chain), ddl(fields)))
        counted = found.groupBy(KIND).agg(F.count("*").alias("n"), F.min(START).alias("least")).collect()
        known = {row[KIND]: row for row in counted}
        many = {kind: known[kind]["n"] if kind in known else 0 for kind in (FIRES, GONE)}
        fires, gone = (found.where(f"{KIND} = {kind}").drop(KIND) for kind in (FIRES, GONE))
        gone = gone.selectExpr(*map(quoted, chain.keys), f"timestamp_micros({START}) AS {START}")
        since = known[OPEN]["least"] if OPEN in known else None
        return Chained((fires, many[FIRES]), (gone, many[GONE]), since)

    def fields(self, rows: DataFrame) -> tuple[Field, ...]:  # noqa: D102
        return fields_of(rows)

    def stamped(self, rows: DataFrame, values: Mapping[str, pa.Scalar]) -> DataFrame:  # noqa: D102
        types = {name: spark_type(data_type(value.type)) for name, value in values.items()}
        columns = [F.lit(value.as_py()).cast(types[name]).alias(name) for name, value in values.items()]
        return rows.select("*", *columns)

    def picked(self, rows: DataFrame, names: Mapping[str, str]) -> DataFrame:  # noqa: D102
        return rows.selectExpr(*(renamed(quoted(name), new) for name, new in names.items()))

    def apart(self, rows: DataFrame, column: str, zero: Sequence[str], more: Sequence[str]) -> Apart[DataFrame]:  # noqa: D102
        none = f"{quoted(column)} = 0"
        [counts] = rows.selectExpr(f"count_if({none}) AS none", f"count_if(NOT {none}) AS more").collect()
        found, rest = rows.where(none).select(*map(quoted, zero)), rows.where(f"NOT {none}").select(*map(quoted, more))
        return (found, counts["none"]), (rest, counts["more"])

    def distinct(self, rows: DataFrame, column: str) -> list[int]:  # noqa: D102
        found = rows.select(F.unix_micros(F.col(column)).alias("value")).distinct().toArrow()
        return [int(v) for v in found["value"].to_pylist()]

    def count(self, rows: DataFrame) -> int:  # noqa: D102
        return rows.count()

    def at_most(self, rows: DataFrame, bound: int) -> int:  # noqa: D102
        return bound

    def arrow(self, rows: DataFrame) -> pa.Table:  # noqa: D102
        return rows.toArrow()

    def tally(self, rows: DataFrame) -> Mapping[str, int]:  # noqa: D102
        texts = rows.select(F.explode("reasons").alias("text"))
        counts = texts.groupBy(F.expr(sort_expression("text")).alias("sort")).count().toArrow()
        return dict(zip(counts["sort"].to_pylist(), counts["count"].to_pylist(), strict=True))

    def encoded(  # noqa: D102
        self, rows: DataFrame, encode: Encode, schema: str, order: Sequence[str] = ()
    ) -> Iterator[tuple[Any, ...]]:
        rows = rows.orderBy(*map(quoted, order)) if order else rows
        yield from map(tuple, rows.mapInArrow(encode, schema).toLocalIterator())

    def visible(self, rows: DataFrame, slices: SliceSet) -> DataFrame:  # noqa: D102
        return rows.where(F.expr(slices.predicate()))

    def table(self, spec: TableSpec, opened: DeltaTable | None = None) -> SparkTable:  # noqa: D102
        if opened is None:
            ensure_table(spec)
        self.before_job()
        return SparkTable(spec, self.session, opened)

    def bare_table(self, spec: TableSpec) -> SparkTable:  # noqa: D102
        if newest(spec) is None:
            ensure_table(spec)
        self.before_job()
        return SparkTable(spec, self.session)

    def release(self) -> None:  # noqa: D102
        for frame in self._cached:
            # Spark Connect resolves the frame again here, which may fail; the batch has ended anyway.
            with suppress(PySparkException):
                frame.unpersist()
        self._cached.clear()


def fields_of(rows: DataFrame) -> tuple[Field, ...]:
    """The columns of a frame."""
    return schema_fields(to_arrow_schema(rows.schema, timezone="UTC"))


def _plain(chain: Chain) -> Encode:
    # It must be a function: Spark's signature check refuses an object with __call__.
    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return chain.of_partition(batches)

    return join
