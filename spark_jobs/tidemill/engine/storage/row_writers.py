"""Two ways to carry rows from a Spark job to a table: through the driver, or by Spark alone.

Few rows, such as results, go through the driver as Arrow data; delta-rs writes them in milliseconds. Many rows stay a
cached DataFrame, and Spark writes them. The code of a batch is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from tidemill.core.contract.reasons import tally_reasons
from tidemill.core.contract.schema import Field, ddl
from tidemill.core.plan.slices import SliceSet, slice_number
from tidemill.engine.spark.garbage import handed
from tidemill.engine.spark.query import of_driver
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.chains import Chain, Chained
from tidemill.engine.storage.spread import Spread
from tidemill.tables.arrow_types import schema_fields
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.interface import Table, TableSpec

Rows = TypeVar("Rows")

Apart = tuple[tuple[Rows, int], tuple[Rows, int]]

Encode = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A function from rows to other rows, batch by batch."""

_BATCH_ROWS = 10_000


class RowWriter(Protocol[Rows]):
    """Holds rows between a Spark job and a table."""

    name: str

    def stage(self, frame: DataFrame) -> tuple[Rows, int]:
        """Run the job once and hold its rows; return them and their number."""
        ...

    def frame(self, parts: Sequence[Rows]) -> DataFrame:
        """Held rows as one DataFrame, with the columns of the first part; there must be at least one part."""
        ...

    def spread(self, parts: Sequence[Rows], spread: Spread) -> Rows:
        """The rows of all parts, each once for every window and node that needs it; there must be at least one part."""
        ...

    def chained(self, parts: Sequence[Rows], chain: Chain) -> Chained[Rows]:
        """The rows of all parts, joined into sessions; there must be at least one part."""
        ...

    def fields(self, rows: Rows) -> tuple[Field, ...]:
        """The columns of the rows."""
        ...

    def stamped(self, rows: Rows, values: Mapping[str, pa.Scalar]) -> Rows:
        """The rows with more columns, each with one value in all rows."""
        ...

    def picked(self, rows: Rows, names: Mapping[str, str]) -> Rows:
        """Some columns of the rows: those that are keys of `names`, under the names that they map to."""
        ...

    def apart(self, rows: Rows, column: str, zero: Sequence[str], more: Sequence[str]) -> Apart[Rows]:
        """The rows where an integer column is 0 with columns `zero`, the others with columns `more`; and how many."""
        ...

    def distinct(self, rows: Rows, column: str) -> list[int]:
        """The different values of a timestamp column, in microseconds since 1970."""
        ...

    def count(self, rows: Rows) -> int:
        """How many rows there are."""
        ...

    def at_most(self, rows: Rows, bound: int) -> int:
        """An upper bound for the number of rows that needs no job; `bound` is one that is known already."""
        ...

    def arrow(self, rows: Rows) -> pa.Table:
        """The rows as an Arrow table in the driver; only for few rows."""
        ...

    def tally(self, rows: Rows) -> Mapping[str, int]:
        """How many rejected rows have each kind of reason (`sort_of`)."""
        ...

    def encoded(self, rows: Rows, encode: Encode, schema: str, order: Sequence[str] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows after `encode`, which runs where they are, by the columns `order`.

        `schema` is DDL text of the encoded columns.
        """
        ...

    def visible(self, rows: Rows, slices: SliceSet) -> Rows:
        """The rows of state whose slice is visible."""
        ...

    def table(self, spec: TableSpec, opened: DeltaTable | None = None) -> Table[Rows]:
        """The table for this writer; it exists and has the columns of the spec.

        `opened` is a handle from a moment ago on a table that is known to exist with these columns.
        """
        ...

    def bare_table(self, spec: TableSpec) -> Table[Rows]:
        """The table for this writer, to be overwritten; it exists, but may have other columns."""
        ...

    def release(self) -> None:
        """Release all cached rows."""
        ...


class DriverWriter:
    """Rows are Arrow tables in the driver; delta-rs writes them."""

    name = "delta-rs"

    def __init__(self, spark: Spark) -> None:
        self._spark = spark

    def stage(self, frame: DataFrame) -> tuple[pa.Table, int]:  # noqa: D102
        rows = frame.toArrow()
        return rows, int(rows.num_rows)

    def frame(self, parts: Sequence[pa.Table]) -> DataFrame:  # noqa: D102
        # A table without rows may have no chunks; Arrow cannot cast that, and Spark Connect refuses it.
        full = [part for part in parts if part.num_rows]
        if not full:
            return self._spark.session.createDataFrame([], ddl(self.fields(parts[0])))
        whole = self.together(full)
        handed(whole.nbytes)
        return of_driver(self._spark.session, whole)

    def together(self, parts: Sequence[pa.Table]) -> pa.Table:
        """All rows in one table, with the columns of the first part."""
        schema = parts[0].schema
        return pa.concat_tables([part.select(schema.names).cast(schema) for part in parts])

    def spread(self, parts: Sequence[pa.Table], spread: Spread) -> pa.Table:  # noqa: D102
        return spread.over(self.together(parts))

    def chained(self, parts: Sequence[pa.Table], chain: Chain) -> Chained[pa.Table]:  # noqa: D102
        return chain.apart(chain.over(self.together(parts)))

    def fields(self, rows: pa.Table) -> tuple[Field, ...]:  # noqa: D102
        return schema_fields(rows.schema)

    def stamped(self, rows: pa.Table, values: Mapping[str, pa.Scalar]) -> pa.Table:  # noqa: D102
        for name, value in values.items():
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        return rows

    def picked(self, rows: pa.Table, names: Mapping[str, str]) -> pa.Table:  # noqa: D102
        return rows.select(list(names)).rename_columns(list(names.values()))

    def apart(self, rows: pa.Table, column: str, zero: Sequence[str], more: Sequence[str]) -> Apart[pa.Table]:  # noqa: D102
        values = pc.unique(rows[column]).to_pylist()
        found, others = rows.select(list(zero)), rows.select(list(more))
        if values != [0]:
            found = found.filter(pc.equal(rows[column], 0))
        # Rows of one value stay together, so that later batches find them in one place.
        parts = [others.filter(pc.equal(rows[column], value)) for value in values if value]
        rest = pa.concat_tables([others.slice(0, 0), *parts])
        return (found, found.num_rows), (rest, rest.num_rows)

    def distinct(self, rows: pa.Table, column: str) -> list[int]:  # noqa: D102
        return [int(v) for v in pc.unique(rows[column].cast(pa.int64())).to_pylist()]

    def count(self, rows: pa.Table) -> int:  # noqa: D102
        return int(rows.num_rows)

    def at_most(self, rows: pa.Table, bound: int) -> int:  # noqa: D102
        return int(rows.num_rows)

    def arrow(self, rows: pa.Table) -> pa.Table:  # noqa: D102
        return rows

    def tally(self, rows: pa.Table) -> Mapping[str, int]:  # noqa: D102
        counts = pc.value_counts(pc.list_flatten(rows["reasons"].combine_chunks()))
        return tally_reasons(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))

    def encoded(  # noqa: D102
        self, rows: pa.Table, encode: Encode, schema: str, order: Sequence[str] = ()
    ) -> Iterator[tuple[Any, ...]]:
        rows = rows.sort_by([(column, "ascending") for column in order]) if order else rows
        for batch in encode(iter(rows.to_batches(max_chunksize=_BATCH_ROWS))):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def visible(self, rows: pa.Table, slices: SliceSet) -> pa.Table:  # noqa: D102
        there = rows.group_by(["batch_id", "attempt"]).aggregate([]).to_pylist()
        shown = [slice_ for s in there if (slice_ := (s["batch_id"], s["attempt"])) in slices]
        if len(shown) == len(there):
            return rows
        numbers = pc.add(pc.multiply(rows["batch_id"], slice_number(1, 0)), rows["attempt"])
        return rows.filter(pc.is_in(numbers, pa.array([slice_number(*each) for each in shown], pa.int64())))

    def table(self, spec: TableSpec, opened: DeltaTable | None = None) -> DeltaRsTable:  # noqa: D102
        handle = opened or ensure_table(spec)
        return DeltaRsTable(spec, opened=handle)

    def bare_table(self, spec: TableSpec) -> DeltaRsTable:  # noqa: D102
        if newest(spec) is None:
            ensure_table(spec)
        return DeltaRsTable(spec)

    def release(self) -> None:  # noqa: D102
        pass
