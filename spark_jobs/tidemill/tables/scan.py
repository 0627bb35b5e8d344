"""Reads rows of a Delta table that meet conditions, in the driver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.errors import TableDamaged
from tidemill.tables.arrow import conform
from tidemill.tables.files import damaged_file
from tidemill.tables.interface import Between, TableSpec
from tidemill.tables.predicates import Parts, datafusion
from tidemill.tables.rewrite import inside


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A read of one version of a table: `where`, `any_of` and `columns` are as in `Table.read`."""

    spec: TableSpec
    handle: DeltaTable
    where: tuple[Between, ...]
    any_of: Parts
    columns: tuple[str, ...]

    @staticmethod
    def of(
        spec: TableSpec,
        handle: DeltaTable,
        *,
        where: tuple[Between, ...] = (),
        any_of: Parts = (),
        columns: tuple[str, ...] | None = None,
    ) -> Scan:
        """The scan, after a check that the conditions fit the columns; ValueError otherwise."""
        for condition in (*where, *(bounds for part in any_of for bounds in part)):
            spec.check(condition)
        return Scan(spec=spec, handle=handle, where=where, any_of=any_of, columns=columns or spec.columns)

    def rows(self) -> pa.Table:
        """All rows.

        Raises:
            TableDamaged: a file of the table is missing or damaged.
        """
        with self._damage_named():
            found = pa.table(self._stream())
        return self._exact(found)

    def batches(self) -> Iterator[pa.Table]:
        """The rows in parts, of which one is in memory at a time; raises as `rows`."""
        with self._damage_named():
            for batch in pa.RecordBatchReader.from_stream(self._stream()):
                yield self._exact(pa.Table.from_batches([batch]))

    def _stream(self) -> object:
        there = [f.name for f in self.handle.schema().fields]
        bounds = self._bounds(there)
        # An old version may lack a column: its value is null, and null is never inside a bound.
        nowhere = datafusion(self.where) != datafusion(bounds)
        parts = tuple(tuple(b.coarse for b in part) for part in self.any_of)
        predicate = "false" if nowhere else datafusion(tuple(b.coarse for b in bounds), parts)
        wanted = [c for c in self._names if c in there] or there[:1]
        return self.handle.scan(columns=wanted, predicate=predicate)

    def _bounds(self, there: list[str]) -> tuple[Between, ...]:
        return tuple(b for b in self.where if b.column in there)

    @property
    def _names(self) -> tuple[str, ...]:
        """The columns to return, and those of conditions."""
        named = (*self.where, *(b for part in self.any_of for b in part))
        return tuple(dict.fromkeys((*self.columns, *(b.column for b in named))))

    def _exact(self, found: pa.Table) -> pa.Table:
        """The rows of a scan that meet the conditions exactly; the scan compares with coarse bounds."""
        rows = conform(found, self.spec, self._names)
        for exact in (b for b in self.where if b != b.coarse):
            rows = rows.filter(inside(rows[exact.column], exact))
        if any(b != b.coarse for part in self.any_of for b in part):
            rows = rows.filter(reduce(pc.or_, (_meets(rows, part) for part in self.any_of)))
        return rows.select(self.columns)

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if (damage := self._damage(error)) is None:
                raise
            raise damage from error

    def _damage(self, error: Exception) -> TableDamaged | None:
        """The damaged file because of which a read failed; None when the reason was another one."""
        try:
            found = damaged_file(self.handle, self.spec, error)
        except Exception:
            return None
        return None if found is None else TableDamaged(f"table {self.spec.name} ({self.spec.uri}): {found}")


def _meets(rows: pa.Table, part: tuple[Between, ...]) -> pa.ChunkedArray:
    """For each row, whether it meets all of these conditions."""
    return reduce(pc.and_, (inside(rows[b.column], b) for b in part))
