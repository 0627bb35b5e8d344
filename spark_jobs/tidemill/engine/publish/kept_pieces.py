"""Which rows of pieces a table keeps: each piece that keys may need alone, and of the others a few rows merged of many.

A window that accumulates is made of all its pieces for ever. Once more than `FEW_WHOLE` of them follow one another,
they are kept as the nodes of `PieceTree` that cover them: at most twice as many as their number has binary digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.engine.aggregate.fold_rows import KEPT
from tidemill.engine.publish.ordered_state import Kept
from tidemill.engine.publish.piece_tree import Merge, PieceTree, descent, size_of, split
from tidemill.engine.publish.pieces import PieceIndex, Run, together

FEW = 64
"""A run of up to so many pieces is merged from the pieces themselves."""

FEW_WHOLE = 8
"""The same for windows that keep runs of pieces as a whole, so that they keep few rows."""

TIMES, OUTGROWN = 4, 10_000
"""State is written anew once it has so many times the rows that keys need, and so many rows more.

To read a row costs about a tenth of writing it.
"""

_SAMPLE = 2_000
"""How many keys of a table are asked how many rows they need: all of them would take longer than reading the rows."""


class _Told(msgspec.Struct, gc=False):
    """Of what a key kept, the runs of pieces that it needs one by one, and those that it needs as a whole.

    `alive` are all of them, as older versions wrote it: they left out no piece.
    """

    alone: tuple[tuple[int, int], ...] = ()
    whole: tuple[tuple[int, int], ...] = ()
    alive: tuple[tuple[int, int], ...] = ()


def few_of(sink: FiringSink) -> int:
    """How many pieces a run may have that is merged from the pieces themselves."""
    return FEW_WHOLE if sink.keeps_wholes else FEW


def needed(sink: FiringSink, keys: pa.Table, pieces: pa.Table, beside: pa.Table | None = None) -> pa.Table:
    """Those of `pieces` that what `keys` have `KEPT` still needs.

    A piece is not needed if a node holds it that is there, among `pieces` or in `beside`.
    """
    few, (alone, whole) = few_of(sink), _runs(sink, keys)
    short, long = split(whole, few)
    every = together(pieces, beside if long else None)
    index = PieceIndex.of(sink.table, every, keys, sink.keys)
    rows = [index.rows_of([*alone, *short]).rows]
    for wanted in descent(index, long):
        rows.append(index.all_rows_of_ids(wanted.keys[wanted.there], wanted.ids[wanted.there]))
    found = np.unique(np.concatenate(rows))
    return pieces.take(pa.array(found[found < pieces.num_rows]))


def is_outgrown(tables: Sequence[tuple[FiringSink, Kept]]) -> bool:
    """Whether most rows of state say what nobody needs any more: they are `TIMES` as many as needed, and `OUTGROWN`."""
    rows = sum(kept.rows for _, kept in tables)
    of_keys: int = sum(kept.keys.num_rows - kept.keys[KEPT].null_count for _, kept in tables)
    if rows <= TIMES * of_keys + OUTGROWN:
        return False
    needs = of_keys + sum(_pieces(sink, kept.keys) for sink, kept in tables)
    return rows > TIMES * needs + OUTGROWN


def _pieces(sink: FiringSink, keys: pa.Table) -> int:
    """About how many rows of pieces these keys need."""
    there = np.flatnonzero(np.asarray(keys[KEPT].is_valid()))
    asked = keys.take(pa.array(there[:: max(1, len(there) // _SAMPLE)]))
    alone, whole = _runs(sink, asked)
    short, long = split(list(set(whole)), few_of(sink))
    found = sum(map(size_of, [*alone, *short])) + sum(size_of(run).bit_length() for run in long)
    return int(found * len(there) // max(1, asked.num_rows))


def nodes_of(sink: FiringSink, keys: pa.Table, each: pa.Table, merge: Merge) -> pa.Table:
    """Rows of nodes that are not there yet, of what these keys keep as a whole; `each` has one row for each id.

    Raises:
        EngineError: pieces are not there, so the state of the table is not what its keys say.
    """
    few, (_, whole) = few_of(sink), _runs(sink, keys)
    if not any(size_of(run) > few for run in whole):
        return each.slice(0, 0)
    index = PieceIndex.of(sink.table, each, keys, sink.keys)
    return PieceTree.of(each, index, whole, few, merge).rows.slice(each.num_rows)


def _runs(sink: FiringSink, keys: pa.Table) -> tuple[Sequence[Run], Sequence[Run]]:
    """The runs that these keys need one by one, and those that they need as a whole, each with the row of its key."""
    decode, alone, whole = msgspec.json.Decoder(_Told).decode, list[Run](), list[Run]()
    for row, text in enumerate(keys[KEPT].to_pylist()):
        if text:
            told = decode(text)
            alone += [(row, *run) for runs in (told.alone, told.alive) for run in runs]
            whole += [(row, *run) for run in told.whole]
    return (alone, whole) if sink.keeps_wholes else ([*alone, *whole], [])
