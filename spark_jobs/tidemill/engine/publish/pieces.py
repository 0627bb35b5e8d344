"""Rows of pieces, found by key and id: which ones a firing is made of, and which ones keys still need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.errors import EngineError
from tidemill.engine.storage.chains import Numbers, numbered


class _Alive(msgspec.Struct):
    """Of what a key kept, the pieces that it still needs, as runs."""

    alive: list[tuple[int, int]]


def newest_of(rows: pa.Table, keys: Sequence[str], column: str) -> pa.Table:
    """For each key, the row with the greatest value of a column of whole numbers."""
    numbers = numbered(rows, keys)
    order = np.lexsort((np.asarray(rows[column]), numbers))
    last = np.append(numbers[order][1:] != numbers[order][:-1], True)[: len(order)]
    return rows.take(pa.array(order[last]))


def alive(rows: pa.Table, pieces: pa.Table, keys: Sequence[str], kept: str, piece: str) -> pa.Table:
    """Those of `pieces` that what keys have `kept` still names."""
    texts, decode = rows[kept].to_pylist(), msgspec.json.Decoder(_Alive).decode
    runs = [(row, *run) for row, text in enumerate(texts) if text for run in decode(text).alive]
    found = PieceIndex.of(pieces, rows.select(list(keys)), keys, piece).rows_of(runs)
    return pieces.take(pa.array(np.unique(found.rows)))


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
    """Rows of pieces in the order of key and id. `codes` say both of each; `of_owners` has the key of what looks up."""

    codes: Numbers
    order: Numbers
    ids: Numbers
    of_owners: Numbers

    @staticmethod
    def of(pieces: pa.Table, owners: pa.Table, keys: Sequence[str], piece: str) -> PieceIndex:
        """An index of `pieces`, for the keys of `owners`."""
        numbers = _together([pieces, owners], keys)
        ids, ranks = np.unique(np.asarray(pieces[piece]), return_inverse=True)
        codes = numbers[: pieces.num_rows] * (len(ids) + 1) + ranks
        order = np.argsort(codes, kind="stable")
        return PieceIndex(codes[order], order, ids, numbers[pieces.num_rows :])

    def rows_of_ids(self, keys: Numbers, ids: Numbers) -> Numbers:
        """The rows of these pieces of these keys; all of them are there."""
        return self.order[np.searchsorted(self.codes, keys * (len(self.ids) + 1) + np.searchsorted(self.ids, ids))]

    def count(self, runs: Sequence[Run]) -> int:
        """How many pieces of these runs are there."""
        low, high, _ = self._bounds(runs)
        return int((high - low).sum())

    def rows_of(self, runs: Sequence[Run]) -> Expanded:
        """The rows of these runs of pieces."""
        low, high, owners = self._bounds(runs)
        sizes = high - low
        first = np.repeat(low - np.append(0, np.cumsum(sizes)[:-1]), sizes) if len(sizes) else sizes
        places = first + np.arange(len(first))
        return Expanded(
            np.repeat(owners, sizes), self.order[places], self.ids[self.codes[places] % (len(self.ids) + 1)]
        )

    def _bounds(self, runs: Sequence[Run]) -> tuple[Numbers, Numbers, Numbers]:
        """Where the pieces of each run begin and end, and the owner of each run."""
        table = np.array(runs, np.int64).reshape(-1, 3)
        owners, base = table[:, 0], self.of_owners[table[:, 0]] * (len(self.ids) + 1)
        low = np.searchsorted(self.codes, base + np.searchsorted(self.ids, table[:, 1]))
        high = np.searchsorted(self.codes, base + np.searchsorted(self.ids, table[:, 2], side="right"))
        return low, high, owners


def check_whole(table: str, index: PieceIndex, runs: Sequence[Run]) -> None:
    """Refuse to publish if a piece of a firing is not there, or twice.

    Raises:
        EngineError: the state of the table is not what its keys say.
    """
    wanted, there = sum(last - first + 1 for _, first, last in runs), index.count(runs)
    if wanted != there:
        raise EngineError(
            f"state of {table} has {there:,} rows of the {wanted:,} pieces that fire",
            fix="`tidemill doctor` checks the table; `tidemill rebuild` builds it again from the log",
        )


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


def picked(rows: pa.Table, column: str, value: int) -> pa.Table:
    """The rows where a column of whole numbers has this value."""
    return rows.filter(pc.equal(rows[column], value))


def nullable(rows: pa.Table) -> pa.Table:
    """The rows with columns that may be null: a row of state is about a key or about a piece."""
    return rows.cast(pa.schema([column.with_nullable(True) for column in rows.schema]))
