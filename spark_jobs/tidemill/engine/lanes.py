"""Two ways to carry rows from a Spark job to a table: through the driver, or by Spark alone.

What is as small as a result goes through the driver as Arrow data and is written by delta-rs in milliseconds. What is
larger stays a cached DataFrame and is written by Spark. A batch is written once, for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.core.slices import SliceSet
from tidemill.engine.tables.deltars import DeltaRsTable
from tidemill.engine.tables.protocol import Table, TableSpec
from tidemill.engine.tables.spark import SparkTable

Rows = TypeVar("Rows")


class Lane(Protocol[Rows]):
    """How a batch holds rows between a Spark job and a table."""

    name: str

    def hold(self, frame: DataFrame) -> Rows:
        """Run the job, once, and hold its rows."""
        ...

    def frame(self, parts: Sequence[Rows]) -> DataFrame:
        """Rows that are held, all of one schema and at least one part, as a DataFrame."""
        ...

    def count(self, rows: Rows) -> int:
        """How many rows are held."""
        ...

    def distinct(self, rows: Rows, column: str) -> list[int]:
        """The different values of a timestamp column, in microseconds since 1970."""
        ...

    def tally(self, rows: Rows, column: str) -> dict[str, int]:
        """How often each text occurs in a column of arrays of texts."""
        ...

    def visible(self, rows: Rows, slices: SliceSet) -> Rows:
        """The rows of state whose slice counts."""
        ...

    def table(self, spec: TableSpec) -> Table[Rows]:
        """The table, to be written by this lane's writer."""
        ...

    def release(self) -> None:
        """Let go of everything that is held."""
        ...


class DriverLane:
    """Rows are Arrow tables in the driver; delta-rs writes them."""

    name = "delta-rs"

    def __init__(self, session: SparkSession, storage_options: Mapping[str, str] | None = None) -> None:
        self._session, self._options = session, storage_options

    def hold(self, frame: DataFrame) -> pa.Table:  # noqa: D102
        return frame.toArrow()

    def frame(self, parts: Sequence[pa.Table]) -> DataFrame:  # noqa: D102
        schema = parts[0].schema
        # A table without rows may come without chunks, which Arrow cannot cast.
        full = [part.select(schema.names).cast(schema) for part in parts if part.num_rows]
        return self._session.createDataFrame(pa.concat_tables(full) if full else schema.empty_table())

    def count(self, rows: pa.Table) -> int:  # noqa: D102
        return int(rows.num_rows)

    def distinct(self, rows: pa.Table, column: str) -> list[int]:  # noqa: D102
        return [int(v) for v in pc.unique(rows[column].cast(pa.int64())).to_pylist()]

    def tally(self, rows: pa.Table, column: str) -> dict[str, int]:  # noqa: D102
        counts = pc.value_counts(pc.list_flatten(rows[column].combine_chunks()))
        return {str(c["values"]): int(c["counts"]) for c in counts.to_pylist()}

    def visible(self, rows: pa.Table, slices: SliceSet) -> pa.Table:  # noqa: D102
        pairs = zip(rows["batch_id"].to_pylist(), rows["attempt"].to_pylist(), strict=True)
        known: dict[tuple[int, int], bool] = {}
        mask = [known.setdefault(pair, pair in slices) for pair in pairs]
        return rows if all(mask) else rows.filter(pa.array(mask))

    def table(self, spec: TableSpec) -> DeltaRsTable:  # noqa: D102
        return DeltaRsTable(spec, storage_options=self._options)

    def release(self) -> None:  # noqa: D102
        pass


class SparkLane:
    """Rows are cached DataFrames on the executors; Spark writes them."""

    name = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._held: list[DataFrame] = []

    def hold(self, frame: DataFrame) -> DataFrame:  # noqa: D102
        cached = self.cache(frame)
        cached.count()
        return cached

    def cache(self, frame: DataFrame) -> DataFrame:
        """The rows, computed by the first job that needs them and kept until `release`."""
        self._held.append(frame.persist())
        return self._held[-1]

    def frame(self, parts: Sequence[DataFrame]) -> DataFrame:  # noqa: D102
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionByName(part.select(*whole.columns))
        return whole

    def count(self, rows: DataFrame) -> int:  # noqa: D102
        return rows.count()

    def distinct(self, rows: DataFrame, column: str) -> list[int]:  # noqa: D102
        found = rows.select(F.unix_micros(F.col(column)).alias("value")).distinct().toArrow()
        return [int(v) for v in found["value"].to_pylist()]

    def tally(self, rows: DataFrame, column: str) -> dict[str, int]:  # noqa: D102
        counts = rows.select(F.explode(column).alias("text")).groupBy("text").count().toArrow()
        return {str(c["text"]): int(c["count"]) for c in counts.to_pylist()}

    def visible(self, rows: DataFrame, slices: SliceSet) -> DataFrame:  # noqa: D102
        return rows.where(F.expr(slices.predicate()))

    def table(self, spec: TableSpec) -> SparkTable:  # noqa: D102
        return SparkTable(spec, self._session)

    def release(self) -> None:  # noqa: D102
        for frame in self._held:
            frame.unpersist()
        self._held.clear()
