"""Pieces merged ahead, so that a firing of many pieces is merged from a few nodes: of 2, 4, 8 and more neighbours.

Which nodes make a firing follows from the ids of its pieces alone. So sums of doubles, which depend on the order of
adding, are the same in the batch that publishes them and in whatever computes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.engine.publish.pieces import PIECE_ID, Expanded, PieceIndex, Run
from tidemill.engine.storage.chains import Numbers

FEW = 64
"""A run of up to so many pieces is merged from the pieces themselves."""

Merge = Callable[[pa.Table], pa.Table]
"""Gives one row for each key and `PIECE_ID`, in any order, of rows that have them."""


class _Nodes(NamedTuple):
    """Nodes of one level, each with the number of what it is for: a firing, or a key."""

    owners: Numbers
    nodes: Numbers


@dataclass(frozen=True)
class _Level:
    """Nodes that are there, in the order of key and node, and where their rows begin."""

    keys: Numbers
    nodes: Numbers
    begin: int

    def places(self, keys: Numbers, nodes: Numbers) -> Numbers:
        """Where the rows of these nodes are; all of them are there."""
        known = np.unique(self.nodes)
        codes = self.keys * len(known) + np.searchsorted(known, self.nodes)
        return self.begin + np.searchsorted(codes, keys * len(known) + np.searchsorted(known, nodes))


@dataclass(frozen=True)
class PieceTree:
    """Rows of pieces, and after them those of nodes from level 1 on, level by level."""

    index: PieceIndex
    rows: pa.Table
    levels: Sequence[_Level]

    @staticmethod
    def of(pieces: pa.Table, index: PieceIndex, runs: Sequence[Run], merge: Merge) -> PieceTree:
        """The tree that these runs need, over `pieces`, all of which are there; nothing is merged if all are short."""
        parts, levels, begin = [pieces], list[_Level](), pieces.num_rows
        below: Callable[[Numbers, Numbers], Numbers] = index.rows_of_ids
        for wanted in _needed(index, [run for run in runs if _size(run) > FEW]):
            twins = np.stack([wanted.nodes * 2, wanted.nodes * 2 + 1], axis=1).ravel()
            held = pa.concat_tables(parts).take(pa.array(below(np.repeat(wanted.owners, 2), twins)))
            of_node = pa.array(np.repeat(np.arange(len(wanted.nodes)), 2))
            place = held.schema.get_field_index(PIECE_ID)
            made = merge(held.set_column(place, PIECE_ID, of_node)).sort_by(PIECE_ID).select(pieces.column_names)
            levels.append(_Level(wanted.owners, wanted.nodes, begin))
            parts.append(made)
            below, begin = levels[-1].places, begin + made.num_rows
        return PieceTree(index, pa.concat_tables(parts), levels)

    def rows_of(self, runs: Sequence[Run]) -> Expanded:
        """The rows that merged give these runs, each with the number of its owner: an owner's in the order of ids."""
        short = self.index.rows_of([run for run in runs if _size(run) <= FEW])
        found = [(short.owners, short.rows, short.ids)]
        for number, (owners, nodes) in enumerate(_parts_of([run for run in runs if _size(run) > FEW])):
            keys = self.index.of_owners[owners]
            places = self.index.rows_of_ids if not number else self.levels[number - 1].places
            found.append((owners, places(keys, nodes), nodes << number))
        owners, rows, ids = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.lexsort((ids, owners))
        return Expanded(owners[order], rows[order], ids[order])


def _size(run: Run) -> int:
    return run[2] - run[1] + 1


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


def _needed(index: PieceIndex, runs: Sequence[Run]) -> list[_Nodes]:
    """The nodes of each level from 1 on, by key: those that make the runs, and those that greater ones are made of."""
    levels = [_Nodes(index.of_owners[each.owners], each.nodes) for each in _parts_of(runs)]
    needed = list[_Nodes]()
    above = _Nodes(np.zeros(0, np.int64), np.zeros(0, np.int64))
    for level in reversed(levels[1:]):
        twins = np.stack([above.nodes * 2, above.nodes * 2 + 1], axis=1).ravel()
        above = _once(np.append(level.owners, np.repeat(above.owners, 2)), np.append(level.nodes, twins))
        needed.insert(0, above)
    return needed


def _once(keys: Numbers, nodes: Numbers) -> _Nodes:
    """Each node of a key once, in the order of key and node."""
    order = np.lexsort((nodes, keys))
    keys, nodes = keys[order], nodes[order]
    new = np.append(True, (keys[1:] != keys[:-1]) | (nodes[1:] != nodes[:-1]))[: len(keys)]
    return _Nodes(keys[new], nodes[new])
