"""The rows that a fold takes and leaves: records of keys in their order, and what is told of keys and firings."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.ordered.alive import pieces_of, wholes_of
from tidemill.core.ordered.firing import Firing, Folded, Reason, State, Wake
from tidemill.core.ordered.kept import runs_of
from tidemill.core.ordered.opened import opened_since
from tidemill.core.ordered.records import Records
from tidemill.core.time.panes import Window
from tidemill.engine.aggregate.epochs import History, Topics
from tidemill.engine.storage.chains import Numbers, numbered

ROW, PIECE, TOLD = "_row", "_piece", "_told"
"""What a row is (`RECORD`, `KEY` or `FIRING`), the piece that a record belongs to, and what is told of a key or firing
as JSON."""

RECORD, KEY, FIRING = 0, 1, 2
"""A record with its piece; what a key keeps; a firing."""

VALUE, MARKER, KEPT = "_value", "_marker", "_kept"
"""The number that a delta compares, whether the row is a marker, and what a key kept: then it is no record."""

Stretch = tuple[int, int]
"""Where the sorted rows of a key's records in one epoch lie, half-open."""

_encode = msgspec.json.Encoder().encode


class KeptState(NamedTuple):
    """What a key kept, when time must pass for it, and, where keys may be too many, when its last record came.

    `last` is the number of the batch times two to the power of 31, and the place of the record among those of the
    batch; None if nobody noted it.
    """

    state: State | None
    wake: Wake
    last: int | None = None


@dataclass(frozen=True)
class Sorted:
    """Rows in the order of key, epoch, topic, partition and offset; what a key kept comes first."""

    order: Numbers
    begins: Numbers
    epochs: list[int]
    kept: list[str | None]
    times: list[int]
    values: list[Any]
    markers: list[bool]
    places: list[tuple[str, int, int]]

    @staticmethod
    def of(rows: pa.Table, keys: tuple[str, ...], history: History, *, marked: bool, placed: bool) -> Sorted:
        """These rows sorted; unless some are `marked`, no record is a marker; `placed` says to give their places."""
        numbers = numbered(rows, keys)
        if "_topic" not in rows.column_names:
            order = np.argsort(numbers, kind="stable")
            kept = rows[KEPT].take(pa.array(order)).to_pylist()
            return Sorted(order, _begins(numbers[order]), [], kept, [], [], [], [])
        topics, partitions, offsets = _places(rows)
        epochs = history.of_rows(topics, partitions, offsets)
        order = np.lexsort((offsets, partitions, topics.of_rows, epochs, numbers))
        picked = rows.select([KEPT, "_time", VALUE, MARKER]).take(pa.array(order))
        kept, times, values, markers = (picked[c].to_pylist() for c in picked.column_names)
        markers = markers if marked else []
        at = rows.select(["_topic", "_partition", "_offset"]).take(pa.array(order if placed else order[:0]))
        places = list(zip(*(column.to_pylist() for column in at.columns), strict=True))
        return Sorted(order, _begins(numbers[order]), epochs[order].tolist(), kept, times, values, markers, places)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the rows of each key lie, half-open."""
        edges = [*self.begins.tolist(), len(self.order)]
        return pairwise(edges)

    def stretches(self, first: int, last: int) -> Iterator[tuple[int, Stretch]]:
        """The epochs of a key's records, which lie from `first` to `last`, each with where its own are."""
        while first < last:
            epoch = self.epochs[first]
            until = bisect_left(self.epochs, epoch + 1, first, last)
            yield epoch, (first, until)
            first = until

    def records(self, first: int, last: int) -> Records:
        """Some rows as records."""
        here = slice(first, last)
        return Records(self.times[here], self.values[here], self.markers[here], self.places[here])


def places_in_batches(rows: pa.Table, history: History) -> Numbers:
    """For each record its place among those of its batch, in the order of topic, partition and offset."""
    if "_topic" not in rows.column_names:
        return np.zeros(rows.num_rows, np.int64)
    topics, partitions, offsets = _places(rows)
    epochs = history.of_rows(topics, partitions, offsets)
    order = np.lexsort((offsets, partitions, topics.of_rows, epochs))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.searchsorted(epochs[order], epochs[order])
    return places


def sorted_by(rows: pa.Table, columns: Sequence[str]) -> Numbers:
    """The rows in the order of these columns, null first; values of types without an order go by their text."""
    sortable = pa.table({f"c{number}": _with_order(rows[column]) for number, column in enumerate(columns)})
    by = [(name, "ascending", "at_start") for name in sortable.column_names]
    return np.asarray(pc.sort_indices(sortable, sort_keys=by))


def _with_order(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([[None if value is None else repr(value) for value in column.to_pylist()]], pa.string())


def _places(rows: pa.Table) -> tuple[Topics, Numbers, Numbers]:
    """Topics, partitions and offsets; -1 for rows that are no records."""
    columns = [pc.fill_null(rows[column].cast(pa.int64()), -1) for column in ("_partition", "_offset")]
    return Topics.of(rows["_topic"]), np.asarray(columns[0]), np.asarray(columns[1])


@dataclass
class Found:
    """What folds gave; rows are told by their place in the sorted order.

    `lost` counts the records that the present key could not take, because the trigger of their window was finished.
    """

    rows: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    told: list[tuple[int, int, str]] = field(default_factory=list)
    lost: int = 0

    def add(self, folded: Folded, row: int, first: int) -> None:
        """The records of a fold that began at `first`, and its firings of the key of `row`."""
        self.rows += folded.positions if not first else [first + position for position in folded.positions]
        self.pieces += folded.pieces
        self.lost += sum(each.reason is Reason.FINISHED for each in folded.dropped)
        self.told += [(row, FIRING, _firing(each, len(self.told) + n)) for n, each in enumerate(folded.firings)]

    def key(self, row: int, kept: KeptState) -> None:
        """What the key of `row` keeps from now on."""
        state = kept.state
        alone, whole = ([], []) if state is None else (pieces_of(state), wholes_of(state))
        told = {"state": state, "wake": [*kept.wake], "alone": alone, "whole": whole, "lost": self.lost}
        told["since"] = None if state is None else opened_since(state)
        if kept.last is not None:
            told["last"] = kept.last
        self.lost = 0
        self.told.append((row, KEY, _encode(told).decode()))

    def table(self, rows: pa.Table, order: Numbers, keys: tuple[str, ...], columns: tuple[str, ...]) -> pa.Table:
        """All of it as rows with the columns of records, those of keys without other values."""
        records = rows.select([c for c in columns if c in rows.column_names]).take(pa.array(order[self.rows]))
        records = pa.table({**_columns(records), **_own([RECORD] * len(self.rows), self.pieces, None)})
        places = pa.array(order[[row for row, _, _ in self.told]])
        of_keys = {key: rows[key].take(places) for key in keys}
        texts = [text for _, _, text in self.told]
        others = pa.table({**of_keys, **_own([kind for _, kind, _ in self.told], None, texts)})
        return pa.concat_tables([records, others], promote_options="default").select(records.column_names)


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {name: rows[name] for name in rows.column_names}


def _own(kinds: list[int], pieces: list[int] | None, told: list[str] | None) -> dict[str, pa.Array]:
    """The columns that the fold adds; null where nothing is given."""
    values: Mapping[str, tuple[Any, Any]] = {
        ROW: (kinds, pa.int32()),
        PIECE: (pieces, pa.int64()),
        TOLD: (told, pa.string()),
    }
    return {n: pa.nulls(len(kinds), of) if v is None else pa.array(v, of) for n, (v, of) in values.items()}


def _firing(firing: Firing, number: int) -> str:
    """A firing as JSON. `number` makes the text differ from that of each other firing."""
    told = {
        "n": number,
        "window": _bounds(firing.window),
        "pieces": runs_of(firing.pieces),
        "timing": firing.timing.value,
        "index": firing.index,
        "last": firing.is_last,
        "retracts": [[_bounds(window), runs_of(pieces)] for window, pieces in firing.retracts],
        "replaces": [window.start for window in firing.replaces],
    }
    return _encode(told).decode()


def _bounds(window: Window | None) -> list[int] | None:
    return None if window is None else [window.start, window.end]


def _begins(numbers: Numbers) -> Numbers:
    """Where a new key begins."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
