"""The rows that a published table keeps when a batch publishes.

A key must not be there and in the batch, too; and rules about the whole table count them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import Sink, WindowedSink, updates_rows
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.scope import Scope
from tidemill.core.once import once
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.sql.text import quoted
from tidemill.core.time.pane_tree import unite
from tidemill.core.time.times import moment
from tidemill.engine.aggregate.firing import Refiring
from tidemill.engine.publish.replaced_keys import ReplacedKeys
from tidemill.engine.publish.session_results import remembered
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.spark.query import without_key
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.table_layout import EVERY_ROW, Uris
from tidemill.tables.arrow import conform
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest
from tidemill.tables.interface import BOUND_TYPES, Between, TableSpec, of_batches
from tidemill.tables.keys import agreeing
from tidemill.tables.rewrite import unmatched

Parts = tuple[tuple[Between, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Finds the rows that a table keeps beside those that a batch stages for it.

    Of single rows, these are the rows of all batches but this one and those that a backfill replaces; a backfill also
    has rows that wait for its last batch. A table whose rows are updated keeps those of all other windows and keys and,
    after a backfill, those of windows that the backfill does not publish again: of firings, none. Sessions that the
    batch removes are not kept either. `job` is the backfill after this batch.
    """

    plan: BatchPlan
    uris: Uris
    writers: RowWriters
    item: SinkRows
    job: Backfill | None = None
    _handles: dict[str, DeltaTable] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def sink(self) -> Sink:
        """What publishes the table."""
        return self.item.sink

    @property
    def staged(self) -> StagedRows:
        """The rows that the batch stages for the table."""
        return self.item.staged

    @property
    def is_of_rows(self) -> bool:
        """Whether the table has single rows, whose keys are about all of it."""
        return not updates_rows(self.sink)

    def asked(self) -> Contract:
        """The contract of the table with the rules that can be told of this batch.

        Until its last batch, a backfill changes nothing that readers see: only then rules look at the whole table, even
        if the last batch itself has no rows. Other rules have nothing to look at where no rows are staged.
        """
        contract, last = self.sink.contract, self.job is not None and self.job.complete
        scopes = {Scope.BATCH} if self.staged.count else set()
        if last or (
            self.job is None and (self.staged.count or self.item.gone is not None or self.item.keys is not None)
        ):
            scopes.add(Scope.TABLE)
        return replace(contract, table_rules=tuple(r for r in contract.table_rules if r.scope in scopes))

    def kept(self, columns: Sequence[str]) -> Iterator[pa.Table | DataFrame]:
        """All rows that the table keeps, with these columns.

        They are of the kind of the staged rows. In the driver, they come in parts of which one is in memory at a time.

        Raises:
            TableDamaged: a file of the table is missing or damaged.
        """
        if self.is_of_rows:
            for spec, parts in self._places():
                yield from self._read(spec, parts, tuple(columns) or spec.columns[:1])
        elif self._opened(spec := self.uris.published_table(self.sink)) is not None:
            if isinstance(self.sink, WindowedSink) and self.job is not None:
                yield from self._not_fired_again(self.sink, self.job, spec, tuple(columns))
            elif self.job is None and self.sink.row_key:
                yield from self._not_staged(spec, tuple(columns))

    def _read(self, spec: TableSpec, parts: Parts, columns: tuple[str, ...]) -> Iterator[pa.Table | DataFrame]:
        opened, replaced = self._opened(spec), self._replaced
        wanted = columns if replaced is None else tuple(dict.fromkeys((*columns, *replaced.columns)))
        if self._in_driver:
            for rows in DeltaRsTable(spec, opened=opened).batches(any_of=parts, columns=wanted):
                yield rows if replaced is None else replaced.others(rows).select(list(columns))
        else:
            frame = self.staged.writer.table(spec, opened).read(any_of=parts, columns=wanted)
            yield frame if replaced is None else self._others(replaced, frame).select(*map(quoted, columns))

    @property
    def _replaced(self) -> ReplacedKeys | None:
        """The rows of keys that the batch publishes again, and so does not keep."""
        if self.item.keys is None or not isinstance(self.sink, FiringSink):
            return None
        return ReplacedKeys.of(self.plan, self.sink, self.item.keys)

    def _others(self, replaced: ReplacedKeys, rows: DataFrame) -> DataFrame:
        return replaced.others_in_spark(rows, self.writers.frame([self.writers.in_driver(replaced.keys)]))

    def _opened(self, spec: TableSpec) -> DeltaTable | None:
        """A handle on the table, opened once: nobody else writes what a batch is about to publish."""
        return once(self._handles, spec.uri, lambda _: newest(spec))

    def _not_fired_again(
        self, sink: WindowedSink, job: Backfill, spec: TableSpec, columns: tuple[str, ...]
    ) -> Iterator[pa.Table | DataFrame]:
        """The rows of windows that a backfill does not publish again."""
        refiring = Refiring.of(sink, job, self.plan.position)
        if sink.merging:
            bounds = remembered(sink, self.plan.position)
            if bounds.low is not None:
                before = replace(bounds, low=None, high=bounds.low)
                yield from self._read(spec, ((before,),), columns or sink.row_key[:1])
        elif sink.start is not None:
            parts = _outside(sink.start, refiring.window_starts(sink))
            yield from self._read(spec, parts, columns or sink.row_key[:1])
        elif not refiring.ranges:
            yield from self._read(spec, (), columns or spec.columns[:1])

    def _not_staged(self, spec: TableSpec, columns: tuple[str, ...]) -> Iterator[pa.Table | DataFrame]:
        """The rows that an upsert of the staged ones leaves as they are."""
        row_key = self.sink.row_key
        wanted = tuple(dict.fromkeys((*columns, *row_key, EVERY_ROW.column)))
        for rows in self._read(spec, (), wanted):
            yield self._without_staged(spec, rows).select(list(columns or row_key[:1]))

    def _without_staged(self, spec: TableSpec, rows: Any) -> Any:
        gone, sink = self.item.gone, self.sink
        removed = [] if gone is None else [self.writers.for_writer(gone, self.staged.writer).rows]
        if not self._in_driver:
            replaced = [frame.select(*map(quoted, sink.row_key)) for frame in (self.staged.rows, *removed)]
            return without_key(rows, reduce(DataFrame.unionByName, replaced), sink.row_key)
        replaced = [conform(each, spec, sink.row_key) for each in (self.staged.rows, *removed)]
        staged = pa.concat_tables(replaced)
        return rows.filter(unmatched(rows, staged, sink.row_key, EVERY_ROW))

    @property
    def _in_driver(self) -> bool:
        return self.staged.writer is self.writers.driver

    def rows(self, columns: Sequence[str]) -> pa.Table | DataFrame | None:
        """The kept rows with these columns, at least those that agree with a staged row in all of them.

        They are of the kind of the staged rows; None when the table keeps no row. In the driver, tables are read in
        parts: only rows that agree stay in memory.

        Raises:
            TableDamaged: a file of the table is missing or damaged.
        """
        if not self.is_of_rows:
            return None
        wanted = tuple(columns)
        if self._in_driver:
            found = [rows for spec, parts in self._places() for rows in self._agreeing(spec, parts, wanted)]
            return pa.concat_tables(found) if found else None
        reads = [rows for spec, parts in self._places() for rows in self._read(spec, parts, wanted)]
        return reduce(DataFrame.unionAll, reads) if reads else None

    def _agreeing(self, spec: TableSpec, parts: Parts, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        staged = self.staged.rows
        where = tuple(found for column in columns if (found := _range(spec, staged, column)) is not None)
        replaced = self._replaced
        wanted = columns if replaced is None else tuple(dict.fromkeys((*columns, *replaced.columns)))
        for rows in DeltaRsTable(spec, opened=self._opened(spec)).batches(where=where, any_of=parts, columns=wanted):
            kept = rows if replaced is None else replaced.others(rows).select(list(columns))
            if (same := agreeing(columns, kept, staged)).num_rows:
                yield same

    def _places(self) -> Iterator[tuple[TableSpec, Parts]]:
        """The tables with kept rows, and which of their batches."""
        spec, job = self.uris.published_table(self.sink), self.plan.job
        if self._opened(spec) is not None:
            yield spec, _other_batches((self.plan.batch_id, *(job.supersedes if job is not None else ())))
        if job is not None and self._opened(place := self.uris.waiting(spec)) is not None:
            # The table may also hold rows of a job that was given up.
            earlier = batch_ranges(b for b in job.slices if b != self.plan.batch_id)
            if earlier:
                yield place, tuple((bounds,) for bounds in of_batches(earlier))


def _outside(column: str, ranges: Sequence[tuple[int, int]]) -> Parts:
    """Conditions of which each row meets one whose time, in microseconds, lies in none of these half-open ranges."""
    ends = unite(ranges)
    lows, highs = [None, *(moment(high) for _, high in ends)], [*(moment(low) for low, _ in ends), None]
    return tuple((Between(column=column, low=low, high=high),) for low, high in zip(lows, highs, strict=True))


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
