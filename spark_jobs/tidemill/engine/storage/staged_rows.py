"""Rows between a Spark job and a table: chooses their writer, and brings them back into Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.contract.exact_sums import exact
from tidemill.core.contract.schema import Field
from tidemill.core.sql.text import quoted
from tidemill.engine.native.statement import run
from tidemill.engine.spark.query import ROWS, query
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.chains import Chain
from tidemill.engine.storage.row_writers import DriverWriter, RowWriter
from tidemill.engine.storage.spark_writer import SparkWriter
from tidemill.engine.storage.spread import Spread
from tidemill.tables.keys import with_key_of

STATE_ROWS = 5
"""The limit of the driver is this many times higher for rows of state that hold only keys and numbers."""

_LIGHT = 2**28
"""The most bytes of rows in the driver, uncompressed, that count as light."""

_BYTES = 1024
"""The most bytes that are merged in the driver, for each row that may go through it: 512 MB, if it is 500,000 rows."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows after a Spark job, and the writer that takes them."""

    writer: RowWriter[Any]
    rows: Any
    count: int

    def stamped(self, values: Mapping[str, pa.Scalar]) -> StagedRows:
        """These rows with more columns, each with one value in all rows."""
        return StagedRows(self.writer, self.writer.stamped(self.rows, values), self.count)

    def picked(self, names: Mapping[str, str]) -> StagedRows:
        """Some columns of these rows: those that are keys of `names`, under the names that they map to."""
        return StagedRows(self.writer, self.writer.picked(self.rows, names), self.count)


@dataclass(frozen=True, slots=True)
class Joined:
    """State of sessions that fire, sessions that are gone, and when the earliest open one starts; see `Chained`."""

    fires: StagedRows
    gone: StagedRows
    open_since: int | None


class RowWriters:
    """Chooses a writer by the number of rows, unless `writer` names one.

    `driver_rows` is the most rows that go through the driver. `before_job` is called before Spark reads or writes
    tables.
    """

    def __init__(
        self,
        spark: Spark,
        *,
        driver_rows: int,
        writer: str | None,
        before_job: Callable[[], None] = lambda: None,
    ) -> None:
        self.driver, self.spark = DriverWriter(spark), SparkWriter(spark, before_job)
        self.before_job = before_job
        self.driver_rows, self._writer = driver_rows, writer

    def of(self, rows: int) -> RowWriter[Any]:
        """The writer for this many rows."""
        small = rows <= self.driver_rows if self._writer is None else self._writer == self.driver.name
        return self.driver if small else self.spark

    def most(self, *, light: bool) -> int:
        """The most rows that go through the driver; rows of `light` state are `STATE_ROWS` times as many."""
        return self.driver_rows * (STATE_ROWS if light else 1)

    def of_state(self, rows: int, *, light: bool) -> RowWriter[Any]:
        """The writer for this many rows of state; light rows have the higher limit of `most`."""
        return self.of(-(-rows // STATE_ROWS) if light else rows)

    def stage(self, frame: DataFrame, *, at_most: int) -> StagedRows:
        """Run the job and stage its rows with the writer for their number; `at_most` is an upper bound of it."""
        self.before_job()
        if self.of(at_most) is self.driver:
            return StagedRows(self.driver, *self.driver.stage(frame))
        cached, count = self.spark.stage(frame)
        if self._writer is None and count <= self.driver_rows:
            return StagedRows(self.driver, *self.driver.stage(cached))
        return StagedRows(self.spark, cached, count)

    def in_job(self, frame: DataFrame) -> pa.Table:
        """Run a job whose rows are few."""
        self.before_job()
        return self.driver.stage(frame)[0]

    def merged(self, statement: str, parts: Sequence[StagedRows], *, at_most: int) -> StagedRows:
        """Stage the rows of a statement over `ROWS`, which are these parts: `at_most` so many.

        Rows that are in the driver are merged there, without a Spark job, where that gives the same rows.
        """
        rows = self._in_driver(statement, parts)
        return self.stage(self._job(statement, parts), at_most=at_most) if rows is None else self.taken(rows)

    def merged_apart(
        self, statement: str, parts: Sequence[StagedRows], column: str, *, zero: Sequence[str], more: Sequence[str]
    ) -> tuple[StagedRows, StagedRows]:
        """Stage the rows of a statement in two parts: those in which an integer column is 0, and the others.

        They have the columns `zero` and `more`, and each uses the writer for its number. Together they are not more
        than the rows of `parts`, and about as wide.
        """
        rows = self._in_driver(statement, parts)
        if rows is None or self.of_state(rows.num_rows, light=True) is not self.driver:
            rows = self._of_few(statement, parts)
        if rows is not None:
            found, rest = self.driver.apart(rows, column, zero, more)
            return StagedRows(self.driver, *found), StagedRows(self.driver, *rest)
        self.before_job()
        job = self.spark.cache(self._job(statement, parts))
        of_zero, of_more = self.spark.apart(job, column, zero, more)
        return self._moved(*of_zero), self._moved(*of_more)

    def _in_driver(self, statement: str, parts: Sequence[StagedRows]) -> pa.Table | None:
        """The rows of a statement, computed in the driver; None when Spark has to do it."""
        if self._writer == self.spark.name or any(p.writer is not self.driver for p in parts):
            return None
        few = sum(p.rows.nbytes for p in parts) <= self.driver_rows * _BYTES
        return run(statement, self.driver.together([p.rows for p in parts])) if few else None

    def _of_few(self, statement: str, parts: Sequence[StagedRows]) -> pa.Table | None:
        """The rows of a job over few rows, in the driver; None when there are many."""
        light = all(p.writer is self.driver for p in parts) and sum(p.rows.nbytes for p in parts) <= _LIGHT
        if self.of_state(sum(p.count for p in parts), light=light) is not self.driver:
            return None
        self.before_job()
        return self.driver.stage(self._job(statement, parts))[0]

    def _job(self, statement: str, parts: Sequence[StagedRows]) -> DataFrame:
        return query(self.spark.session, statement, self.frame(parts))

    def _moved(self, rows: DataFrame, count: int) -> StagedRows:
        """Cached rows, with the writer for their number."""
        if self.of(count) is self.driver:
            return StagedRows(self.driver, *self.driver.stage(rows))
        return StagedRows(self.spark, rows, count)

    def where(self, rows: pa.Table, columns: Sequence[str], predicate: str) -> pa.Table:
        """Columns of the rows in the driver for which a predicate is true; computed there if that gives the same."""
        types = {f.name: f.type for f in self.driver.fields(rows)}
        statement = f"SELECT {', '.join(quoted(name) for name in columns)} FROM {ROWS} WHERE"
        for where in dict.fromkeys((predicate, certain := exact(predicate, types).sql)):
            found = None if self._writer == self.spark.name else run(f"{statement} {where}", rows)
            if found is not None:
                return found
        self.before_job()
        return self._job(f"{statement} {certain}", [self.in_driver(rows)]).toArrow()

    def in_driver(self, rows: pa.Table) -> StagedRows:
        """Stage rows that are in the driver already."""
        return StagedRows(self.driver, rows, rows.num_rows)

    def taken(self, rows: pa.Table) -> StagedRows:
        """Stage rows that are in the driver already, with the writer for their number."""
        here = self.in_driver(rows)
        return here if self.of(rows.num_rows) is self.driver else self.stage(self.frame([here]), at_most=rows.num_rows)

    def appended(self, rows: pa.Table) -> StagedRows:
        """Stage rows that are in the driver already and only have to be appended, which Spark would not do faster."""
        return self.taken(rows) if self._writer == self.spark.name else self.in_driver(rows)

    def for_writer(self, rows: StagedRows, writer: RowWriter[Any]) -> StagedRows:
        """The same rows for this writer."""
        if rows.writer is writer:
            return rows
        moved = rows.writer.arrow(rows.rows) if writer is self.driver else self.frame([rows])
        return StagedRows(writer, moved, rows.count)

    def fields(self, parts: Sequence[StagedRows]) -> tuple[Field, ...]:
        """The columns of all these rows together."""
        first = next((p for p in parts if p.count), parts[0])
        return first.writer.fields(first.rows)

    def frame(self, parts: Sequence[StagedRows]) -> DataFrame:
        """All rows as one DataFrame, with the columns of the first part; there must be at least one part."""
        writers = [(writer, [p.rows for p in parts if p.writer is writer]) for writer in (self.driver, self.spark)]
        return self.spark.frame([writer.frame(rows) for writer, rows in writers if rows])

    def spread(self, parts: Sequence[StagedRows], spread: Spread, *, at_most: int) -> list[StagedRows]:
        """The rows of all parts, once for each window and node that needs them: at most `at_most` rows."""
        found = []
        for writer in (self.driver, self.spark):
            if mine := [p.rows for p in parts if p.writer is writer and p.count]:
                rows = writer.spread(mine, spread)
                found.append(StagedRows(writer, rows, writer.at_most(rows, at_most)))
        return found

    def chained(self, parts: Sequence[StagedRows], chain: Chain) -> Joined:
        """All rows, joined into sessions; there must be at least one part."""
        here = all(part.writer is self.driver for part in parts) and self._writer != self.spark.name
        if here:
            found = self.driver.chained([part.rows for part in parts], chain)
            fires, gone = StagedRows(self.driver, *found.fires), StagedRows(self.driver, *found.gone)
            return Joined(fires, gone, found.open_since)
        self.before_job()
        joined = self.spark.chained([self.frame(parts)], chain)
        return Joined(self._moved(*joined.fires), self._moved(*joined.gone), joined.open_since)

    def of_keys(self, part: StagedRows, others: StagedRows, keys: Sequence[str]) -> StagedRows:
        """The rows of a part whose key others have, too, if all are in the driver; otherwise the whole part."""
        if part.writer is not self.driver or others.writer is not self.driver:
            return part
        return self.in_driver(part.rows.take(pa.array(with_key_of(part.rows, others.rows, keys))))

    def together(self, parts: Sequence[StagedRows]) -> StagedRows:
        """All rows in one part; there must be at least one."""
        if len(parts) == 1:
            return parts[0]
        if all(part.writer is self.driver for part in parts):
            return self.taken(self.driver.together([part.rows for part in parts]))
        return self.stage(self.frame(parts), at_most=sum(p.count for p in parts))

    def release(self) -> None:
        """Release everything that is cached on the executors."""
        self.spark.release()
