"""The rows of state of an ordered sink: what keys keep, and the aggregates of their pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.time.watermarks import BEGINNING
from tidemill.engine.aggregate.aggregate_sql import state_columns
from tidemill.engine.aggregate.fold_rows import KEPT, KEY, PIECE, RECORD, ROW, TOLD
from tidemill.engine.publish.pieces import PIECE_ID, newest_of, nullable, picked
from tidemill.tables.keys import with_key_of

AS_OF, STATE = "key_as_of", "key_state"
"""Columns of state: how late the key was looked at, and what it kept.

A row has either a piece (`PIECE_ID`) or what a key kept; one with neither says that the key keeps nothing any more.
"""

WATERMARK, CLOCK, USED, SINCE, LAST = LOOKS = ("key_watermark", "key_clock", "key_used", "key_since", "key_last")
"""Columns of state. In microseconds: the watermark and the clock that a key waits for, the clock of its last record
where idle keys are forgotten, and the start of its oldest window that may still change. Where surplus keys are
forgotten, a number that says which record of all keys its last one was. Null where there is none.

They repeat what the text of a key says, so that no batch has to read the texts of keys that it leaves alone. Instead
of no watermark a row has `NEVER`; null is in rows of older versions, of which only the text says it.
"""

NEVER = BEGINNING

_NOWHERE: Mapping[str, pa.Scalar] = {
    "pane_day": pa.scalar(date(1970, 1, 1), pa.date32()),
    "pane_start": pa.scalar(datetime(1970, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
}
"""Ordered windows are no panes of event time: all state lies in one place."""


class _State(msgspec.Struct, gc=False):
    used: int | None = None


class _Told(msgspec.Struct, gc=False):
    """Of what is told of a key, when it must be looked at and when it was used, and how many records it lost."""

    wake: tuple[int | None, int | None]
    state: _State | None = None
    since: int | None = None
    last: int | None = None
    lost: int = 0


_told = msgspec.json.Decoder(_Told).decode


@dataclass(frozen=True)
class Kept:
    """The state of an ordered sink before a batch: what keys kept, with `AS_OF`, `LOOKS` and `KEPT`, and its pieces.

    `rows` is the number of rows that were read.
    """

    keys: pa.Table
    pieces: pa.Table
    rows: int

    def with_keys_of(self, sink: FiringSink, other: Kept | None, keys: pa.Table) -> Kept:
        """The same, with what `other` says of these keys in the place of what is said here; nothing if it is None."""
        found = []
        for mine, theirs in ((self.keys, other and other.keys), (self.pieces, other and other.pieces)):
            left = np.ones(mine.num_rows, np.bool_)
            left[with_key_of(mine, keys, sink.keys)] = False
            parts = [mine.filter(pa.array(left)), *([] if theirs is None else [of_keys(theirs, keys, sink)])]
            found.append(pa.concat_tables(parts, promote_options="permissive"))
        return Kept(found[0], found[1], self.rows)

    @staticmethod
    def of(sink: FiringSink, rows: pa.Table) -> Kept:
        """What rows of state say: the newest of each key, and all pieces."""
        of_piece = rows[PIECE_ID].is_valid()
        pieces = rows.select([*sink.keys, PIECE_ID, *state_columns(sink)]).filter(of_piece)
        for name in LOOKS:
            if name not in rows.column_names:
                rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.int64()))
        columns = [*sink.keys, AS_OF, *LOOKS, STATE]
        of_keys = rows.select(columns).rename_columns([*columns[:-1], KEPT]).filter(pc.invert(of_piece))
        keys = newest_of(of_keys, sink.keys, AS_OF)
        return Kept(_with_looks(keys), pieces, rows.num_rows)


def told_keys(sink: FiringSink, found: pa.Table, stamp: int) -> pa.Table:
    """What a fold told of keys, as `Kept.keys` has it."""
    of_keys = picked(found, ROW, KEY).select([*sink.keys, TOLD])
    texts = [None if text.startswith('{"state":null') else text for text in of_keys[TOLD].to_pylist()]
    columns = {AS_OF: pa.repeat(pa.scalar(stamp, pa.int64()), of_keys.num_rows), **_looks(texts)}
    return pa.table({**{k: of_keys[k] for k in sink.keys}, **columns, KEPT: pa.array(texts, pa.string())})


def of_keys(rows: pa.Table, others: pa.Table, sink: FiringSink) -> pa.Table:
    """Those of `rows` whose key is one of `others`."""
    return rows.take(pa.array(with_key_of(rows, others, sink.keys)))


def waiting(sink: FiringSink, keys: pa.Table) -> pa.Table:
    """Of the keys that keep something, what a fold takes."""
    return keys.select([*sink.keys, KEPT]).filter(keys[KEPT].is_valid())


def lost(found: pa.Table) -> int:
    """How many records a fold lost, because they came to windows whose trigger had finished."""
    return sum(_told(text).lost for text in picked(found, ROW, KEY)[TOLD].to_pylist())


def state_rows(sink: FiringSink, keys: pa.Table, pieces: pa.Table | None) -> pa.Table | None:
    """Rows of state that say what `keys` keep, and those of pieces; None if there are none."""
    if not keys.num_rows and (pieces is None or not pieces.num_rows):
        return None
    of_keys = keys.select([*sink.keys, AS_OF, *LOOKS, KEPT]).rename_columns([*sink.keys, AS_OF, *LOOKS, STATE])
    parts = [of_keys] if pieces is None else [of_keys, pieces]
    rows = nullable(pa.concat_tables(parts, promote_options="permissive"))
    for name, value in reversed(list(_NOWHERE.items())):
        rows = rows.add_column(0, name, pa.repeat(value, rows.num_rows))
    return rows


def new_pieces(sink: FiringSink, found: pa.Table) -> pa.Table:
    """The aggregates of the pieces of a batch, as rows of state."""
    names = [*sink.keys, PIECE, *state_columns(sink)]
    return picked(found, ROW, RECORD).select(names).rename_columns([*sink.keys, PIECE_ID, *state_columns(sink)])


def _with_looks(keys: pa.Table) -> pa.Table:
    """The keys with all of `LOOKS`, from their texts where an older version wrote them."""
    older = pc.and_(keys[KEPT].is_valid(), keys[WATERMARK].is_null())
    if not pc.any(older).as_py():
        return keys
    rows = keys.filter(older)
    for name, column in _looks(rows[KEPT].to_pylist()).items():
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return pa.concat_tables([keys.filter(pc.invert(older)), rows])


def _looks(texts: Iterable[str | None]) -> Mapping[str, pa.Array]:
    """The columns `LOOKS` of what keys keep."""
    found: dict[str, list[int | None]] = {name: [] for name in LOOKS}
    for told in (None if text is None else _told(text) for text in texts):
        watermark, clock = (None, None) if told is None else told.wake
        used = None if told is None or told.state is None else told.state.used
        since, last = (None, None) if told is None else (told.since, told.last)
        looks = (NEVER if watermark is None else watermark, clock, used, since, last)
        for values, value in zip(found.values(), looks, strict=True):
            values.append(value)
    return {name: pa.array(values, pa.int64()) for name, values in found.items()}
