"""Folds the records of each key in their order (`tidemill.core.ordered`): in Spark's Python workers, or in the driver.

It works on all rows of a key together, one partition of keys at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.ordered.alive import pieces_of, wholes_of
from tidemill.core.ordered.firing import Firing, Folded, Reason, State, Wake
from tidemill.core.ordered.foldable import Ordered
from tidemill.core.ordered.idle_keys import ForgettingFold
from tidemill.core.ordered.kept import runs_of
from tidemill.core.ordered.machine import Machine, machine_of
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

_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode

_PIECES = 31
"""New pieces of a batch have ids from its number times two to the power of this."""


_NEVER = Wake()


class _Kept(NamedTuple):
    """What a key kept, and when time must pass for it."""

    state: State | None
    wake: Wake


@dataclass(frozen=True, kw_only=True)
class OrderedFold:
    """How records become pieces and firings of a `window`. `columns` are those of records that leave it.

    `marked` says that some records are markers.

    Input rows have the columns `keys`, `KEPT`, and, unless all rows are about what keys kept, those of records with
    `VALUE` and `MARKER`. There is at most one row with something in `KEPT` for each key.
    """

    keys: tuple[str, ...]
    window: Ordered
    history: History
    columns: tuple[str, ...]
    marked: bool = False

    def of_partition(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """`over` for one partition of keys in a Python worker."""
        together = list(batches)
        if together:
            yield from self.over(pa.Table.from_batches(together)).to_batches()

    def over(self, rows: pa.Table) -> pa.Table:
        """Records with their pieces, then what keys keep, then firings: with `ROW`, `PIECE` and `TOLD`."""
        found, sorted_ = _Found(), _Sorted.of(rows, self.keys, self.history, marked=self.marked)
        for first, last in sorted_.spans():
            self._fold_key(sorted_, first, last, found)
        return found.table(rows, sorted_.order, self.keys, self.columns)

    @cached_property
    def _machine(self) -> Machine:
        return machine_of(self.window)

    @cached_property
    def _moments(self) -> tuple[list[int], list[int]]:
        """The greatest watermark and the greatest clock up to each epoch, so that both can be searched."""
        after = [e.after for e in self.history.epochs]
        return list(accumulate((m.watermark for m in after), max)), list(accumulate((m.clock for m in after), max))

    def _fold_key(self, rows: _Sorted, first: int, last: int, found: _Found) -> None:
        """The rows of one key, from `first` to `last`, epoch by epoch; time passes in between."""
        kept, at, row = _Kept(None, Wake()), 0, first
        if (told := rows.kept[first]) is not None:
            kept, first = self._kept(told), first + 1
        before = kept
        while first < last:
            epoch = rows.epochs[first]
            until = bisect_left(rows.epochs, epoch + 1, first, last)
            kept, at = self._let_time_pass(kept, at, epoch, row, found)
            kept = self._fold(kept, rows.records(first, until), epoch, (row, first), found)
            first, at = until, epoch + 1
        kept, _ = self._let_time_pass(kept, at, len(self.history.epochs), row, found)
        if kept is not before:
            found.key(row, kept)

    def _kept(self, told: str) -> _Kept:
        """What a key kept, as text; it may have been kept when the declaration had another timeout, or none."""
        read, machine = _decode(told), self._machine
        wake = Wake(*read["wake"])
        return _Kept(read["state"], machine.woken(read["state"], wake) if isinstance(machine, ForgettingFold) else wake)

    def _let_time_pass(self, kept: _Kept, at: int, until: int, row: int, found: _Found) -> tuple[_Kept, int]:
        """Fold without records in each epoch before `until` that the key waits for."""
        if kept.wake == _NEVER:
            return kept, at
        while (woken := self._next_wake(kept.wake, at, until)) is not None:
            kept = self._fold(kept, Records(), woken, (row, row), found)
            at = woken + 1
        return kept, at

    def _next_wake(self, wake: Wake, at: int, until: int) -> int | None:
        """The first epoch from `at` to `until` that moves watermark or clock to where the key must be looked at."""
        watermarks, clocks = self._moments
        while at < until:
            reached = [until]
            if wake.watermark is not None:
                reached.append(bisect_left(watermarks, wake.watermark, at, until))
            if wake.clock is not None:
                reached.append(bisect_left(clocks, wake.clock, at, until))
            at = min(reached)
            # The clock of a computer may be set back, and repairs let no time pass.
            if at < until and wake.reached(*self.history.epochs[at].after):
                return at
            at += 1
        return None

    def _fold(self, kept: _Kept, records: Records, epoch: int, rows: tuple[int, int], found: _Found) -> _Kept:
        now = self.history.epochs[epoch]
        folded = self._machine.fold(kept.state, records, now.before, now.after, now.batch_id << _PIECES)
        found.add(folded, *rows)
        return _Kept(folded.state, folded.wake)


@dataclass(frozen=True)
class _Sorted:
    """Rows in the order of key, epoch, topic, partition and offset; what a key kept comes first."""

    order: Numbers
    begins: Numbers
    epochs: list[int]
    kept: list[str | None]
    times: list[int]
    values: list[Any]
    markers: list[bool]

    @staticmethod
    def of(rows: pa.Table, keys: tuple[str, ...], history: History, *, marked: bool) -> _Sorted:
        numbers = numbered(rows, keys)
        if "_topic" not in rows.column_names:
            order = np.argsort(numbers, kind="stable")
            return _Sorted(order, _begins(numbers[order]), [], rows[KEPT].take(pa.array(order)).to_pylist(), [], [], [])
        topics = Topics.of(rows["_topic"])
        partitions, offsets = (
            np.asarray(pc.fill_null(rows[c].cast(pa.int64()), -1)) for c in ("_partition", "_offset")
        )
        epochs = history.of_rows(topics, partitions, offsets)
        order = np.lexsort((offsets, partitions, topics.of_rows, epochs, numbers))
        picked = rows.select([KEPT, "_time", VALUE, MARKER]).take(pa.array(order))
        kept, times, values, markers = (picked[c].to_pylist() for c in picked.column_names)
        markers = markers if marked else []
        return _Sorted(order, _begins(numbers[order]), epochs[order].tolist(), kept, times, values, markers)

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where the rows of each key lie, half-open."""
        edges = [*self.begins.tolist(), len(self.order)]
        return pairwise(edges)

    def records(self, first: int, last: int) -> Records:
        """Some rows as records."""
        return Records(self.times[first:last], self.values[first:last], self.markers[first:last])


@dataclass
class _Found:
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

    def key(self, row: int, kept: _Kept) -> None:
        """What the key of `row` keeps from now on."""
        state = kept.state
        alone, whole = ([], []) if state is None else (pieces_of(state), wholes_of(state))
        told = {"state": state, "wake": [*kept.wake], "alone": alone, "whole": whole, "lost": self.lost}
        told["since"] = None if state is None else opened_since(state)
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


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.asarray(pc.fill_null(column.cast(pa.int64()), -1))


def _begins(numbers: Numbers) -> Numbers:
    """Where a new key begins."""
    return np.flatnonzero(np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)])
