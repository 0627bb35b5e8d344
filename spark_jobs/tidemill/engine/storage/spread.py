"""Repeats rows of state and of nodes: once for each window and each node that is merged from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.time.pane_tree import Node

LEVEL, START, CERTAIN, TOUCHED, ALONE = "_level", "_start", "_certain", "_touched", "_alone"
"""Columns: level and start of the node, or of the window (level 0), that a row is for; whether it is certainly wanted;
whether this batch brought the row; whether no node holds the row yet."""

_LEVELS = 16
_RUN = 1_000
"""Runs of rows that are this long on average are sliced, not copied row by row."""
_PLACE = ("pane_level", "pane_start")


@dataclass(frozen=True, slots=True)
class Made:
    """A window (level 0) or a node that rows are for. A `certain` one is made even if the batch did not touch it."""

    level: int
    start: int
    certain: bool


@dataclass(frozen=True, kw_only=True)
class Spread:
    """What rows are for, in two forms: `made` says it for one node, the statement `text` for rows with `bounds`.

    Input rows have the columns `pane_level`, `pane_start`, `TOUCHED`, `ALONE` and `columns`. Output rows have
    `columns`, `TOUCHED`, `LEVEL`, `START` and `CERTAIN`. The second argument of `made` says whether the rows are alone.
    """

    made: Callable[[Node, bool], Sequence[Made]]
    text: str
    bounds: Mapping[str, pa.Scalar]
    columns: Sequence[str]

    def over(self, rows: pa.Table) -> pa.Table:
        """The rows, each repeated as needed, without a Spark job: there are few nodes, even if each has many rows."""
        nodes, which = _nodes(rows)
        kept, which = _in_runs(rows.select([*self.columns, TOUCHED]), which)
        made = [self.made(node, alone) for node, alone in nodes]
        times = np.array([len(m) for m in made], np.int64)
        # The windows and nodes of a row are neighbours in `flat`, from `first` on.
        first = np.array([0, *accumulate(len(m) for m in made)], np.int64)
        flat = [m for some in made for m in some]
        values: Mapping[str, np.ndarray] = {
            LEVEL: np.array([m.level for m in flat], np.int32),
            START: np.array([m.start for m in flat], np.int64),
            CERTAIN: np.array([m.certain for m in flat], np.bool_),
        }
        parts = []
        for nth in range(max(map(len, made), default=0) or 1):
            row = np.flatnonzero((times > nth)[which])
            part = _taken(kept, row)
            for name, column in values.items():
                part = part.append_column(name, pa.array(column[first[which[row]] + nth]))
            parts.append(part)
        return pa.concat_tables(parts)


def _in_runs(rows: pa.Table, which: np.ndarray) -> tuple[pa.Table, np.ndarray]:
    """The rows, and which node each belongs to, with rows of a node together where that makes long runs."""
    batches, numbers, at = [], [], 0
    for batch in rows.to_batches():
        part = which[at : at + batch.num_rows]
        at += batch.num_rows
        most = batch.num_rows // _RUN
        mixed = np.count_nonzero(np.diff(part)) > most and len(np.unique(part)) <= most
        order = np.argsort(part, kind="stable") if mixed else None
        batches.append(batch if order is None else batch.take(pa.array(order)))
        numbers.append(part if order is None else part[order])
    return pa.Table.from_batches(batches, rows.schema), np.concatenate([*numbers, which[:0]])


def _taken(rows: pa.Table, wanted: np.ndarray) -> pa.Table:
    """The rows with these numbers, which are sorted; long runs of rows are not copied."""
    edges = np.flatnonzero(np.diff(wanted) != 1) + 1
    if not len(wanted) or len(edges) * _RUN > len(wanted):
        return rows.take(pa.array(wanted))
    firsts, lasts = wanted[[0, *edges]], wanted[[*(edges - 1), len(wanted) - 1]]
    return pa.concat_tables([rows.slice(a, b - a + 1) for a, b in zip(firsts.tolist(), lasts.tolist(), strict=True)])


def _nodes(rows: pa.Table) -> tuple[list[tuple[Node, bool]], np.ndarray]:
    """The different nodes, each with whether its rows are alone, and for each row the number of its node."""
    level, start = (np.asarray(rows[c].cast(pa.int64())) for c in _PLACE)
    alone = np.asarray(rows[ALONE]).astype(np.int64)
    # Starts of nodes are far from 64 bits: event times end in the year 9999.
    found = pa.array(start * (2 * _LEVELS) + level * 2 + alone).dictionary_encode()
    codes = found.dictionary.to_pylist()
    nodes = [(Node(code // 2 % _LEVELS, code // (2 * _LEVELS)), bool(code % 2)) for code in codes]
    return nodes, np.asarray(found.indices)
