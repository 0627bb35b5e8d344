"""The rows that a published table keeps when a batch publishes: a key must not be there and in the batch, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.bind.flow import RowSink, Sink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.interface import BOUND_TYPES, Between, TableSpec, of_batches
from tidemill.tables.keys import agreeing

Parts = tuple[tuple[Between, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Finds the rows that a table of rows keeps beside those that a batch stages for it.

    They are the rows of all batches but this one and those that a backfill replaces; a backfill also has rows that wait
    for its last batch. A table of windows has none: its batches replace rows, by window and key.
    """

    plan: BatchPlan
    uris: Uris
    writers: RowWriters
    sink: Sink
    staged: StagedRows

    def rows(self, columns: Sequence[str]) -> pa.Table | DataFrame | None:
        """The kept rows with these columns, at least those that agree with a staged row in all of them.

        They are of the kind of the staged rows; None when the table keeps no row. In the driver, tables are read in
        parts: only rows that agree stay in memory.

        Raises:
            TableDamaged: a file of the table is missing or damaged.
        """
        if not isinstance(self.sink, RowSink):
            return None
        wanted = tuple(columns)
        if self.staged.writer is self.writers.driver:
            found = [rows for spec, parts in self._places() for rows in self._agreeing(spec, parts, wanted)]
            return pa.concat_tables(found) if found else None
        reads = [self.staged.writer.table(spec).read(any_of=parts, columns=wanted) for spec, parts in self._places()]
        return reduce(DataFrame.unionAll, reads) if reads else None

    def _agreeing(self, spec: TableSpec, parts: Parts, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        staged = self.staged.rows
        where = tuple(found for column in columns if (found := _range(spec, staged, column)) is not None)
        for rows in DeltaRsTable(spec).batches(where=where, any_of=parts, columns=columns):
            if (same := agreeing(columns, rows, staged)).num_rows:
                yield same

    def _places(self) -> Iterator[tuple[TableSpec, Parts]]:
        """The tables with kept rows, and which of their batches."""
        spec, job = self.uris.published_table(self.sink), self.plan.job
        if newest(spec) is not None:
            yield spec, _other_batches((self.plan.batch_id, *(job.supersedes if job is not None else ())))
        if job is not None and newest(place := self.uris.waiting(spec)) is not None:
            # The table may also hold rows of a job that was given up.
            earlier = batch_ranges(b for b in job.slices if b != self.plan.batch_id)
            if earlier:
                yield place, tuple((bounds,) for bounds in of_batches(earlier))


def _other_batches(batches: Sequence[int | BatchRange]) -> Parts:
    """Conditions of which each row of other batches meets one."""
    ranges = batch_ranges(batches)
    lows, highs = [None, *(r.until_batch for r in ranges)], [*(r.from_batch for r in ranges), None]
    return tuple((Between(column="batch_id", low=low, high=high),) for low, high in zip(lows, highs, strict=True))


def _range(spec: TableSpec, rows: pa.Table, column: str) -> Between | None:
    """The range of a column in these rows; None where a table cannot be read by it."""
    if spec.field(column).type not in BOUND_TYPES:
        return None
    found = pc.min_max(rows[column]).as_py()
    low, high = found["min"], _after(found["max"])
    return None if low is None or high is None else Between(column=column, low=low, high=high)


def _after(value: Any) -> Any:
    """The next value; None when there is none."""
    try:
        match value:
            case int():
                return value + 1 if value < 2**63 - 1 else None
            case datetime():
                return value + timedelta(microseconds=1)
            case _:
                return value + timedelta(days=1)
    except (OverflowError, TypeError):
        return None
