"""The rows of state of an ordered sink: what keys keep, and the aggregates of their pieces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.engine.aggregate.aggregate_sql import state_columns
from tidemill.engine.aggregate.ordered_fold import KEPT, PIECE, RECORD, ROW
from tidemill.engine.publish.pieces import PIECE_ID, newest_of, nullable, picked

AS_OF, STATE = "key_as_of", "key_state"
"""Columns of state: how late the key was looked at, and what it kept.

A row has either a piece (`PIECE_ID`) or what a key kept; one with neither says that the key keeps nothing any more.
"""

_NOWHERE: Mapping[str, pa.Scalar] = {
    "pane_day": pa.scalar(date(1970, 1, 1), pa.date32()),
    "pane_start": pa.scalar(datetime(1970, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
}
"""Ordered windows are no panes of event time: all state lies in one place."""


@dataclass(frozen=True)
class Kept:
    """The state of an ordered sink before a batch: what keys kept, with `AS_OF` and `KEPT`, and rows of pieces.

    `rows` is the number of rows that were read.
    """

    keys: pa.Table
    pieces: pa.Table
    rows: int

    @staticmethod
    def of(sink: FiringSink, rows: pa.Table) -> Kept:
        """What rows of state say: the newest of each key, and all pieces."""
        of_keys = rows.filter(rows[PIECE_ID].is_null()).select([*sink.keys, AS_OF, STATE])
        keys = newest_of(of_keys.rename_columns([*sink.keys, AS_OF, KEPT]), sink.keys, AS_OF)
        pieces = rows.filter(rows[PIECE_ID].is_valid()).select([*sink.keys, PIECE_ID, *state_columns(sink)])
        return Kept(keys, pieces, rows.num_rows)


def state_rows(sink: FiringSink, keys: pa.Table, pieces: pa.Table | None) -> pa.Table | None:
    """Rows of state that say what `keys` keep, and those of pieces; None if there are none."""
    if not keys.num_rows and (pieces is None or not pieces.num_rows):
        return None
    of_keys = pa.table({**{k: keys[k] for k in sink.keys}, AS_OF: keys[AS_OF], STATE: keys[KEPT]})
    parts = [of_keys] if pieces is None else [of_keys, pieces]
    rows = nullable(pa.concat_tables(parts, promote_options="permissive"))
    for name, value in reversed(list(_NOWHERE.items())):
        rows = rows.add_column(0, name, pa.repeat(value, rows.num_rows))
    return rows


def waiting(keys: pa.Table) -> pa.Table:
    """The keys that keep something, without `AS_OF`."""
    return keys.filter(keys[KEPT].is_valid()).drop_columns([AS_OF])


def states(texts: pa.ChunkedArray) -> pa.Array:
    """What keys keep; null for those that keep nothing."""
    return pa.array([None if text.startswith('{"state":null') else text for text in texts.to_pylist()], pa.string())


def new_pieces(sink: FiringSink, found: pa.Table) -> pa.Table:
    """The aggregates of the pieces of a batch, as rows of state."""
    names = [*sink.keys, PIECE, *state_columns(sink)]
    return picked(found, ROW, RECORD).select(names).rename_columns([*sink.keys, PIECE_ID, *state_columns(sink)])
