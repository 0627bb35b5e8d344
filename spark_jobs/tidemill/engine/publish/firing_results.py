"""The rows of firings, merged from the pieces that each is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.contract.verdict import CheckResult
from tidemill.engine.aggregate.aggregate_sql import state_columns
from tidemill.engine.aggregate.firing_sql import FIRING, OF_FIRING, merged_firings, nothing_folded
from tidemill.engine.aggregate.fold_rows import TOLD
from tidemill.engine.aggregate.window_sql import folded_state
from tidemill.engine.publish.fired import Fired
from tidemill.engine.publish.kept_pieces import FEW, few_of, nodes_of
from tidemill.engine.publish.piece_tree import PieceTree
from tidemill.engine.publish.pieces import PIECE_ID, PieceIndex, Run, in_parts
from tidemill.engine.read.fitted import told
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows

_AT_ONCE = 2_000_000
"""The most rows of pieces that are merged at once."""

Nothing = Callable[[], pa.Table]
"""Gives one row: the partial aggregates of a sink over no record."""


@dataclass(kw_only=True)
class FiringResults:
    """Merges pieces into the rows to publish. `unfit` collects values that do not fit the contract."""

    writers: RowWriters
    unfit: list[CheckResult] = field(default_factory=list)

    def merged(self, sink: FiringSink, fires: pa.Table, each: pa.Table, nothing: Nothing) -> StagedRows:
        """The rows to publish for these firings; `each` has one row for each piece or node and key (`one_each`).

        Raises:
            EngineError: pieces are not there, so the state of the table is not what its keys say.
        """
        told_of, owners = _told(fires[TOLD].to_pylist())
        read = told_of.pop("pieces")
        columns = {name: pa.array(told_of[name], of) for name, of in OF_FIRING.items()}
        fires = pa.table({**{k: fires[k].take(owners) for k in sink.keys}, **columns})
        runs = [(number, *run) for number, part in enumerate(read) for run in part]
        empty = [number for number, part in enumerate(read) if not part]
        parts = list(self._expanded(sink, fires, each, runs)) if runs else []
        if empty:
            parts.append(self._of_nothing(sink, fires, empty, nothing))
        statement = merged_firings(ROWS, sink)
        staged = [self.writers.merged(statement, [self.writers.in_driver(p)], at_most=p.num_rows) for p in parts]
        rows, unfit = told(self.writers.together(staged), sink.table, sink.contract)
        self.unfit += unfit
        return rows

    def gone(self, sink: FiringSink, fired: Fired, rows: StagedRows) -> StagedRows | None:
        """Keys of rows to remove, of a table that a firing updates: what became part of others, or is left out now."""
        if not sink.removes:
            return None
        staged = rows.picked({name: name for name in sink.row_key or (sink.computed[0].name,)})
        left = fired.without(sink, staged.writer.arrow(staged.rows))
        return self.writers.in_driver(left) if left.num_rows else None

    def _expanded(self, sink: FiringSink, fires: pa.Table, each: pa.Table, runs: Sequence[Run]) -> Iterator[pa.Table]:
        """Rows of pieces, once for each firing that is made of them, in parts that fit in memory."""
        index, few = PieceIndex.of(sink.table, each, fires, sink.keys), few_of(sink)
        tree = PieceTree.of(each, index, runs, few, lambda rows: self.one_each(sink, [rows]))
        for part in in_parts(runs, _AT_ONCE, each=FEW):
            found = tree.rows_of(part)
            rows = tree.rows.select([*sink.keys, *state_columns(sink)]).take(pa.array(found.rows))
            yield _for_firings(rows, fires, found.owners)

    def one_each(self, sink: FiringSink, pieces: Sequence[pa.Table]) -> pa.Table:
        """One row for each piece or node and key."""
        parts = [self.writers.in_driver(part) for part in pieces if part.num_rows]
        if not parts:
            return pieces[0]
        statement = folded_state(ROWS, sink, self.writers.fields(parts), (PIECE_ID,))
        merged = self.writers.merged(statement, parts, at_most=sum(part.count for part in parts))
        return merged.writer.arrow(merged.rows)

    def nodes(self, sink: FiringSink, keys: pa.Table, each: pa.Table) -> pa.Table:
        """Rows of nodes that `each` lacks, of what these keys keep as a whole."""
        return nodes_of(sink, keys, each, lambda rows: self.one_each(sink, [rows]))

    def _of_nothing(self, sink: FiringSink, fires: pa.Table, empty: Sequence[int], nothing: Nothing) -> pa.Table:
        """A row for each firing without records."""
        numbers = np.asarray(empty)
        rows = nothing().take(pa.array(np.zeros(len(numbers), np.int64)))
        for key in reversed(sink.keys):
            rows = rows.add_column(0, fires.schema.field(key), fires[key].take(pa.array(numbers)))
        return _for_firings(rows, fires, numbers)

    def of_nothing(self, sink: FiringSink, rows: DataFrame) -> pa.Table:
        """One row: the partial aggregates over none of these rows."""
        staged = self.writers.stage(nothing_folded(rows, sink), at_most=1)
        return staged.writer.arrow(staged.rows)


def _told(texts: Sequence[str]) -> tuple[dict[str, list[Any]], pa.Array]:
    """What is told of each row to publish, and the number of the firing that it comes from.

    A firing that takes earlier ones back gives a row for each of these, too.
    """
    found: dict[str, list[Any]] = {name: [] for name in (*OF_FIRING, "pieces")}
    owners, decode = [], msgspec.json.Decoder().decode
    for number, text in enumerate(texts):
        read = decode(text)
        rows = [(*row, "delete") for row in read["retracts"]] + [(read["window"], read["pieces"], "insert")]
        for window, pieces, operation in rows:
            start, end = window or (None, None)
            values = (start, end, read["timing"], read["index"], read["last"], operation, pieces)
            for column, value in zip(found.values(), values, strict=True):
                column.append(value)
            owners.append(number)
    return found, pa.array(owners, pa.int64())


def _for_firings(rows: pa.Table, fires: pa.Table, owners: np.ndarray) -> pa.Table:
    """Rows with the number of the firing that each is for, and what is told of it."""
    numbers = pa.array(owners)
    rows = rows.append_column(FIRING, numbers)
    for column in OF_FIRING:
        rows = rows.append_column(column, fires[column].take(numbers))
    return rows
