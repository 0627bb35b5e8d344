"""Pieces merged ahead, so that a firing of many pieces is merged from a few nodes: of 2, 4, 8 and more neighbours.

Which nodes make a firing follows from the ids of its pieces alone. So sums of doubles, which depend on the order of
adding, are the same in the batch that publishes them and in whatever computes them again. A node may also be there
from the beginning, as a row of state in the place of its pieces (`tidemill.engine.publish.kept_pieces`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.engine.publish.pieces import PIECE_ID, Expanded, PieceIndex, Run
from tidemill.engine.storage.chains import Numbers

Merge = Callable[[pa.Table], pa.Table]
"""Gives one row for each key and `PIECE_ID`, in any order, of rows that have them."""


class Wanted(NamedTuple):
    """Nodes of one level in the order of key and node, and which of them are there."""

    level: int
    keys: Numbers
    nodes: Numbers
    there: np.ndarray

    @property
    def ids(self) -> Numbers:
        """What is in `PIECE_ID` of the rows of these nodes."""
        return node_ids(self.level, self.nodes)

    @property
    def twins(self) -> tuple[Numbers, Numbers]:
        """Keys and nodes of the level below that make those that are not there, two for each."""
        nodes = self.nodes[~self.there]
        return np.repeat(self.keys[~self.there], 2), np.stack([nodes * 2, nodes * 2 + 1], axis=1).ravel()


def node_ids(level: int, nodes: Numbers) -> Numbers:
    """The ids of rows of nodes: that of a single piece, or minus the id of the first piece of the node's second half.

    So an id says both level and node, and no piece has it.
    """
    return nodes if level == 0 else -((2 * nodes + 1) << (level - 1))


def size_of(run: Run) -> int:
    """How many pieces a run has."""
    return run[2] - run[1] + 1


def descent(index: PieceIndex, runs: Sequence[Run]) -> Iterator[Wanted]:
    """The fewest nodes that cover exactly these runs, from the highest level down to single pieces.

    A node that is not there is divided into the two below it.
    """
    cover = [_Nodes(index.of_owners[each.owners], each.nodes) for each in _parts_of(runs)]
    keys = nodes = np.zeros(0, np.int64)
    for level in reversed(range(len(cover))):
        wanted = _once(np.append(cover[level].owners, keys), np.append(cover[level].nodes, nodes))
        there = index.counts_of(wanted.owners, node_ids(level, wanted.nodes)) > 0
        yield (found := Wanted(level, *wanted, there))
        keys, nodes = found.twins


class _Nodes(NamedTuple):
    """Nodes of one level, each with the number of what it is for: a firing, or a key."""

    owners: Numbers
    nodes: Numbers


@dataclass(frozen=True)
class _Level:
    """Nodes in the order of key and node, and the number of the row of each."""

    keys: Numbers
    nodes: Numbers
    rows: Numbers

    def places(self, keys: Numbers, nodes: Numbers) -> Numbers:
        """The rows of these nodes; all of them are there."""
        known = np.unique(self.nodes)
        codes = self.keys * len(known) + np.searchsorted(known, self.nodes)
        return self.rows[np.searchsorted(codes, keys * len(known) + np.searchsorted(known, nodes))]


@dataclass(frozen=True)
class PieceTree:
    """Rows of pieces and nodes that are there, and after them those of nodes that were made, level by level.

    A run of up to `few` pieces is merged from the pieces themselves.
    """

    index: PieceIndex
    few: int
    rows: pa.Table
    levels: Sequence[_Level]

    @staticmethod
    def of(pieces: pa.Table, index: PieceIndex, runs: Sequence[Run], few: int, merge: Merge) -> PieceTree:
        """The tree that these runs need, over `pieces`; nothing is merged if all are short.

        Raises:
            EngineError: pieces of these runs are not there, so the state of the table is not what its keys say.
        """
        short, long = split(runs, few)
        there, size = len(index.rows_of(short).rows), sum(map(size_of, short))
        *above, single = list(descent(index, long)) or [_NOTHING]
        if there != size or not single.there.all():
            raise index.missing(there + int(single.there.sum()), size + len(single.nodes))
        tree, parts = PieceTree(index, few, pieces, []), [pieces]
        for wanted in reversed(above):
            made = _made(wanted, tree, merge)
            rows = tree.rows.num_rows + np.cumsum(~wanted.there) - 1
            rows[wanted.there] = index.rows_of_ids(wanted.keys[wanted.there], wanted.ids[wanted.there])
            parts.append(made)
            tree = PieceTree(
                index, few, pa.concat_tables(parts), [*tree.levels, _Level(wanted.keys, wanted.nodes, rows)]
            )
        return tree

    def rows_of(self, runs: Sequence[Run]) -> Expanded:
        """The rows that merged give these runs, each with the number of its owner: an owner's in the order of ids."""
        shorter, longer = split(runs, self.few)
        short = self.index.rows_of(shorter)
        found = [(short.owners, short.rows, short.ids)]
        for level, (owners, nodes) in enumerate(_parts_of(longer)):
            found.append((owners, self.places(level, self.index.of_owners[owners], nodes), nodes << level))
        owners, rows, ids = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((ids, owners))
        return Expanded(owners[order], rows[order], ids[order])

    def places(self, level: int, keys: Numbers, nodes: Numbers) -> Numbers:
        """The rows of these nodes, all of which are there or made."""
        return self.levels[level - 1].places(keys, nodes) if level else self.index.rows_of_ids(keys, nodes)


def _made(wanted: Wanted, below: PieceTree, merge: Merge) -> pa.Table:
    """The rows of those nodes that are not there, merged from the level below."""
    new = wanted.nodes[~wanted.there]
    if not len(new):
        return below.rows.slice(0, 0)
    held = below.rows.take(pa.array(below.places(wanted.level - 1, *wanted.twins)))
    of_node = pa.array(np.repeat(np.arange(len(new)), 2))
    place = held.schema.get_field_index(PIECE_ID)
    made = merge(held.set_column(place, PIECE_ID, of_node)).sort_by(PIECE_ID).select(held.column_names)
    return made.set_column(place, held.schema.field(place), pa.array(wanted.ids[~wanted.there]))


_NOTHING = Wanted(0, *(np.zeros(0, np.int64),) * 2, np.zeros(0, np.bool_))


def split(runs: Sequence[Run], few: int) -> tuple[list[Run], list[Run]]:
    """The runs that are short, and the others."""
    return [run for run in runs if size_of(run) <= few], [run for run in runs if size_of(run) > few]


def _parts_of(runs: Sequence[Run]) -> Iterator[_Nodes]:
    """What makes these runs, level by level, from single pieces on: the fewest nodes that cover exactly the run."""
    table = np.array(runs, np.int64).reshape(-1, 3)
    owners, low, high = table[:, 0], table[:, 1], table[:, 2] + 1
    while len(owners):
        first, last = (low & 1) == 1, (high & 1) == 1
        yield _Nodes(np.append(owners[first], owners[last]), np.append(low[first], high[last] - 1))
        low, high = (low + first) >> 1, (high - last) >> 1
        left = low < high
        owners, low, high = owners[left], low[left], high[left]


def _once(keys: Numbers, nodes: Numbers) -> _Nodes:
    """Each node of a key once, in the order of key and node."""
    order = np.lexsort((nodes, keys))
    keys, nodes = keys[order], nodes[order]
    new = np.append(True, (keys[1:] != keys[:-1]) | (nodes[1:] != nodes[:-1]))[: len(keys)]
    return _Nodes(keys[new], nodes[new])
