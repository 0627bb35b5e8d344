"""Rows of pieces, found by key and id: which ones a firing is made of, and which ones keys still need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.errors import EngineError
from tidemill.engine.storage.chains import Numbers, numbered


def newest_of(rows: pa.Table, keys: Sequence[str], column: str) -> pa.Table:
    """For each key, the row with the greatest value of a column of whole numbers."""
    numbers = numbered(rows, keys)
    order = np.lexsort((np.asarray(rows[column]), numbers))
    newest = np.zeros(len(order), np.bool_)
    newest[order[np.append(numbers[order][1:] != numbers[order][:-1], True)[: len(order)]]] = True
    return rows if newest.all() else rows.filter(pa.array(newest))


PIECE_ID = "piece_id"
"""The column of state that says which piece a row has aggregates of."""


Run = tuple[int, int, int]
"""Pieces of which something is made: its number, the first id and the last one."""


@dataclass(frozen=True)
class Expanded:
    """Rows of pieces by their number, each with the number of what it was looked up for, in that order, and its id."""

    owners: Numbers
    rows: Numbers
    ids: Numbers


@dataclass(frozen=True)
class PieceIndex:
    """Rows of pieces of a table in the order of key and id, of which `codes` say both.

    `of_owners` has the key of whatever looks up.
    """

    table: str
    codes: Numbers
    order: Numbers
    ids: Numbers
    of_owners: Numbers

    @staticmethod
    def of(table: str, pieces: pa.Table, owners: pa.Table, keys: Sequence[str]) -> PieceIndex:
        """An index of `pieces` of a table, for the keys of `owners`."""
        numbers = _together([pieces, owners], keys)
        ids, ranks = np.unique(np.asarray(pieces[PIECE_ID]), return_inverse=True)
        codes = numbers[: pieces.num_rows] * (len(ids) + 1) + ranks
        order = np.argsort(codes, kind="stable")
        return PieceIndex(table, codes[order], order, ids, numbers[pieces.num_rows :])

    def counts_of(self, keys: Numbers, ids: Numbers) -> Numbers:
        """How many rows there are of each of these pieces of these keys."""
        low, high = self._bounds(keys, ids, ids)
        return high - low

    def rows_of_ids(self, keys: Numbers, ids: Numbers) -> Numbers:
        """The first row of each of these pieces of these keys; all of them are there."""
        return self.order[self._bounds(keys, ids, ids)[0]]

    def rows_of(self, runs: Sequence[Run]) -> Expanded:
        """The rows of these runs of pieces that are there."""
        table = np.array(runs, np.int64).reshape(-1, 3)
        owners = table[:, 0]
        low, high = self._bounds(self.of_owners[owners], table[:, 1], table[:, 2])
        sizes = high - low
        places = _each(low, sizes)
        return Expanded(
            np.repeat(owners, sizes), self.order[places], self.ids[self.codes[places] % (len(self.ids) + 1)]
        )

    def all_rows_of_ids(self, keys: Numbers, ids: Numbers) -> Numbers:
        """All rows of these pieces of these keys."""
        low, high = self._bounds(keys, ids, ids)
        return self.order[_each(low, high - low)]

    def missing(self, there: int, wanted: int) -> EngineError:
        """Some of the rows that firings are made of are not there: the state of the table is not what its keys say."""
        return EngineError(
            f"state of {self.table} has {there:,} of {wanted:,} rows that its firings are made of",
            fix="`tidemill doctor` checks the table; `tidemill rebuild` builds it again from the log",
        )

    def _bounds(self, keys: Numbers, first: Numbers, last: Numbers) -> tuple[Numbers, Numbers]:
        """Where the rows of the pieces of each key from `first` to `last` begin and end, in the order of codes."""
        base = keys * (len(self.ids) + 1)
        low = np.searchsorted(self.codes, base + np.searchsorted(self.ids, first))
        high = np.searchsorted(self.codes, base + np.searchsorted(self.ids, last, side="right"))
        return low, high


def _each(first: Numbers, sizes: Numbers) -> Numbers:
    """The numbers from each `first` on, as many as `sizes` says."""
    if not len(sizes):
        return sizes
    begin = np.repeat(first - np.append(0, np.cumsum(sizes)[:-1]), sizes)
    return begin + np.arange(len(begin))


def in_parts(runs: Sequence[Run], most: int, *, each: int) -> Iterator[Sequence[Run]]:
    """The runs in parts of whole owners, with at most `most` rows or with one owner; a run has at most `each` rows.

    Owners are in order.
    """
    part: list[Run] = []
    size = 0
    for run in runs:
        more = min(run[2] - run[1] + 1, each)
        if part and size + more > most and part[-1][0] != run[0]:
            yield part
            part, size = [], 0
        part.append(run)
        size += more
    if part:
        yield part


def _together(tables: Sequence[pa.Table], keys: Sequence[str]) -> Numbers:
    """Numbers of keys over several tables, whose types of keys are the same but for how Arrow lays them out."""
    names, first = list(keys), tables[0]
    parts = [first.select(names), *(table.select(names).cast(first.select(names).schema) for table in tables[1:])]
    if not names:
        return np.zeros(sum(table.num_rows for table in tables), np.int64)
    return numbered(pa.concat_tables(parts), keys)


def together(*parts: pa.Table | None) -> pa.Table | None:
    """The rows of these tables as one; None if there is no table."""
    given = [part for part in parts if part is not None]
    return pa.concat_tables(given, promote_options="permissive") if given else None


def picked(rows: pa.Table, column: str, value: int) -> pa.Table:
    """The rows where a column of whole numbers has this value."""
    return rows.filter(pc.equal(rows[column], value))


def nullable(rows: pa.Table) -> pa.Table:
    """The rows with columns that may be null: a row of state is about a key or about a piece."""
    return rows.cast(pa.schema([column.with_nullable(True) for column in rows.schema]))
