"""Rejected and late rows of a batch, and the rows that a repair takes out of their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.plan.amendments import Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.account import went_away
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.times import moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.side_outputs import late_rows, rejected_rows
from tidemill.engine.spark.query import query
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.interface import Between, TableSpec, of_batches
from tidemill.tables.keys import agreeing
from tidemill.tables.lookup import Lookup
from tidemill.tables.rewrite import Picked

_TIMESTAMP = pa.timestamp("us", "UTC")
_PLACE = ("topic", "partition", "offset")
_TABLE = "table_name"

_FEW = 8
"""Of rows that go to no more tables, the plan is read again for each of them; otherwise the rows are kept."""


class _Group(NamedTuple):
    """Tables whose late rows are late by one watermark; a backfill folds them again if they are of `firings`."""

    tables: tuple[str, ...]
    firings: bool
    watermark: int


@dataclass(frozen=True)
class SideOutputs:
    """The rows for quarantine and late table: those that the pass has held, or else those that a second pass finds.

    A second pass reads the blocks that hold some. In a backfill, rows are late for forgotten windows. A late row is put
    aside only if the record was put aside before; `superseded` gives those records. All other late rows are in the
    published windows already. Tables of `firings` are an exception: their late rows are in no firing, and late by the
    watermark in any batch. A live batch names none: its late rows are all alike.
    """

    streams: Sequence[Stream]
    counts: Mapping[str, Counts]
    plan: BatchPlan
    writers: RowWriters
    superseded: Callable[[], pa.Table]
    firings: tuple[str, ...] = ()

    def rejected(self, spec: TableSpec) -> StagedRows | None:
        """Rows of `spec`, the quarantine, with every reason; None when no record was rejected.

        Raises:
            EngineError: they are not as many as the pass has counted.
        """
        counted = sum(c.account.rejected for c in self.counts.values())
        if not counted:
            return None
        with self._step():
            if self._is_held:
                staged = self.writers.taken(pa.concat_tables(c.rejected for c in self.counts.values()))
            else:
                staged = self._read([query(s.session, rejected_rows(s.source), frame) for s, frame in self._frames])
        self._complete(spec, staged.count, counted)
        return self._stamped(staged)

    def late(self, spec: TableSpec) -> StagedRows | None:
        """Rows of `spec`, the late table; None when no row was late.

        Raises:
            EngineError: they are not as many as the pass has counted.
        """
        if not self._late_rows:
            return None
        before = None if self.plan.job is None else self.superseded()
        if before is not None and not before.num_rows and not self.firings:
            return None
        with self._step():
            found = self._held_late(before) if self._is_held else self._read_late(before)
        if before is None:
            self._complete(spec, sum(staged.count for staged in found), self._late_rows)
        parts = [self._stamped(s, watermark=_known(g.watermark)) for g, s in zip(self._groups, found, strict=True)]
        if self._is_held:
            return self.writers.taken(pa.concat_tables(part.rows for part in parts))
        return self.writers.together(parts)

    @cached_property
    def _groups(self) -> list[_Group]:
        """The tables that may have late rows, those together whose rows are late by the same watermark."""
        found: dict[tuple[bool, int], list[str]] = {}
        for table in dict.fromkeys(b.sink.table for s in self.streams for b in s.branches):
            own = table in self.firings
            at = self.plan.position.watermark_of(table) if own else self.plan.late_until(table)
            found.setdefault((own, at), []).append(table)
        return [_Group(tuple(tables), own, at) for (own, at), tables in found.items()]

    def _held_late(self, before: pa.Table | None) -> list[StagedRows]:
        """The late rows of each group."""
        rows, parts = pa.concat_tables(c.late for c in self.counts.values()), list[pa.Table]()
        for group in self._groups:
            own = rows.filter(pc.is_in(rows[_TABLE], pa.array(group.tables, pa.string())))
            parts.append(own if before is None or group.firings else agreeing(before.column_names, own, before))
        return [self.writers.in_driver(part) for part in parts]

    def _read_late(self, before: pa.Table | None) -> list[StagedRows]:
        """The same as `_held_late`, read again."""
        parts = [query(s.session, text, frame) for s, frame in self._frames if (text := late_rows(s.branches))]
        there = self.writers.spark.session.createDataFrame(before) if before is not None and before.num_rows else None
        found = list[StagedRows]()
        for group in self._groups:
            own = [part.where(part[_TABLE].isin(list(group.tables))) for part in parts]
            if before is not None and not group.firings:
                known = before.column_names
                own = [p.where("false") if there is None else p.join(there, known, "left_semi") for p in own]
            found.append(self._read(own))
        return found

    @property
    def _late_rows(self) -> int:
        return sum(c.late_rows for c in self.counts.values())

    @cached_property
    def _is_held(self) -> bool:
        """Whether the pass has brought back all rows."""
        return all(
            c.rejected.num_rows == c.account.rejected and c.late.num_rows == c.late_rows for c in self.counts.values()
        )

    @cached_property
    def _frames(self) -> list[tuple[Stream, DataFrame]]:
        streams = [s for s in self.streams if self.counts[s.source.topic].side_outputs]
        frames = [(s, s.side_outputs(self.counts[s.source.topic])) for s in streams]
        twice = self._late_rows and any(c.account.rejected for c in self.counts.values())
        # A union has the plan of its rows once for each table; rows that are cached have a short one.
        return [(s, self.writers.spark.cache(f) if twice or len(s.branches) > _FEW else f) for s, f in frames]

    def _step(self) -> AbstractContextManager[None]:
        return boundary("side_outputs", self.plan.batch_id)

    def _read(self, parts: Sequence[DataFrame]) -> StagedRows:
        whole = reduce(DataFrame.unionByName, parts)
        return self.writers.stage(whole, at_most=sum(c.side_outputs for c in self.counts.values()))

    def _complete(self, spec: TableSpec, found: int, counted: int) -> None:
        """Check that there are as many rows as the pass has counted: none may be lost between two readings."""
        if found != counted:
            where = f"{self.plan.pipeline}: batch {self.plan.batch_id}: table {spec.name}"
            raise went_away(where, expected=counted, found=found)

    def _stamped(self, staged: StagedRows, **values: pa.Scalar) -> StagedRows:
        batch_id, clock = pa.scalar(self.plan.batch_id, pa.int64()), pa.scalar(self.plan.clock, _TIMESTAMP)
        return staged.stamped({"batch_id": batch_id, "recorded_at": clock, **values})


def _known(watermark: int) -> pa.Scalar:
    return pa.scalar(None if watermark in (BEGINNING, END) else moment(watermark), _TIMESTAMP)


@dataclass(frozen=True)
class Taken:
    """The rows that a repair takes out of the table `spec`: rows that its batches put there."""

    spec: TableSpec
    plan: BatchPlan
    repair: Repair

    @property
    def within(self) -> tuple[Between, ...]:
        """Predicates for the rows of the batches that the repair takes from."""
        return of_batches(self.repair.batches)

    @cached_property
    def rows(self) -> Picked:
        """Which of these rows it takes: those of records that the plan reads, of the one table `only` if it is set."""
        places = {topic: Lookup(ranges) for topic, ranges in self.plan.reads.items()}
        only = self.repair.only

        def meant(rows: pa.Table) -> npt.NDArray[np.bool_]:
            found = np.zeros(rows.num_rows, dtype=bool)
            for topic, lookup in places.items():
                here = pc.equal(rows["topic"], topic).to_numpy()
                found |= here & (lookup.find(rows["partition"], rows["offset"]) >= 0)
            return found if only is None else found & pc.equal(rows["table_name"], only).to_numpy()

        return Picked(_PLACE if only is None else (*_PLACE, "table_name"), meant)

    def left(self) -> pa.Table:
        """The rows of these batches that the repair does not take."""
        rows = self._there()
        return rows.filter(pa.array(~self.rows.meant(rows)))

    def back(self, refused: pa.Table) -> pa.Table:
        """The rows of records that were `refused` again, as rows of this batch.

        The late table's own rows are kept: they say which published table lacks the record; the quarantine could not.
        """
        rows = self._there()
        rows = rows.filter(pa.array(self.rows.meant(rows)))
        again = set(zip(*(refused[c].to_pylist() for c in _PLACE), strict=True))
        places = zip(*(rows[c].to_pylist() for c in _PLACE), strict=True)
        return _of_this_batch(rows.filter(pa.array([place in again for place in places], pa.bool_())), self.plan)

    def _there(self) -> pa.Table:
        """The rows of these batches, in the version of the table that the plan names."""
        table = DeltaRsTable(self.spec)
        return pa.concat_tables(table.read(where=(bounds,), version=self.repair.version) for bounds in self.within)


def _of_this_batch(rows: pa.Table, plan: BatchPlan) -> pa.Table:
    stamps = {"batch_id": plan.batch_id, "recorded_at": plan.clock}
    columns = [
        pa.array([stamps[f.name]] * rows.num_rows, f.type) if f.name in stamps else rows[f.name] for f in rows.schema
    ]
    return pa.table(columns, schema=rows.schema)
