"""Folds the keys of a table together, batch by batch, where there may be more keys than the table keeps.

Which keys are forgotten follows from the records of all others. So all keys are folded in one place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nsmallest
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.ordered.firing import Wake
from tidemill.core.ordered.records import Records
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.aggregate.fold_rows import Found, KeptState, Sorted, key_order, reading_order

_RECORDS = 31
"""`KeptState.last` is the number of the batch times two to the power of this, and the place of the record in it."""


class _Fold(Protocol):
    """The fold of one key (`tidemill.engine.aggregate.ordered_fold.OrderedFold`)."""

    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def history(self) -> History: ...
    @property
    def most(self) -> int | None: ...
    def begun(self, rows: Sorted, first: int) -> tuple[KeptState, int]: ...
    def fold(self, kept: KeptState, records: Records, epoch: int, rows: tuple[int, int], found: Found) -> KeptState: ...


class _Key:
    """A key: the first of its sorted rows, what it kept, what it keeps, and its records."""

    __slots__ = ("before", "first", "kept", "number", "row")

    def __init__(self, number: int, row: int, kept: KeptState, first: int) -> None:
        self.number, self.row, self.before, self.kept, self.first = number, row, kept, kept, first


class _Together:
    """The keys of a table while they are folded."""

    def __init__(self, fold: _Fold, sorted_: Sorted, rows: pa.Table, found: Found) -> None:
        self._fold, self._sorted, self._rows, self._found = fold, sorted_, rows, found
        self._spans = list(sorted_.spans())
        self._keys = [_Key(n, row, *fold.begun(sorted_, row)) for n, (row, _) in enumerate(self._spans)]
        self._keeping = {key.number: key for key in self._keys if key.kept.state is not None}

    def run(self) -> None:
        """Fold all batches, and tell what each key keeps that was folded or forgotten."""
        touched = self._touched()
        for epoch, batch in enumerate(self._fold.history.epochs):
            now, records = batch.after, touched.get(epoch, {})
            for key in [k for n, k in self._keeping.items() if n not in records and k.kept.wake.reached(*now)]:
                self._keep(key, self._fold.fold(key.kept, Records(), epoch, (key.row, key.row), self._found))
            for number, (first, until) in records.items():
                self._take(self._keys[number], first, until, epoch)
            self._forget()
        for key in self._keys:
            if key.kept is not key.before:
                self._found.key(key.row, key.kept)

    def _touched(self) -> Mapping[int, Mapping[int, tuple[int, int]]]:
        """For each epoch and key, where the sorted rows of its records lie, half-open."""
        found: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        for key, (_, last) in zip(self._keys, self._spans, strict=True):
            for epoch, first, until in self._stretches(key.first, last):
                found[epoch][key.number] = first, until
        return found

    def _stretches(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        epochs = self._sorted.epochs
        while first < last:
            until = bisect_left(epochs, epochs[first] + 1, first, last)
            yield epochs[first], first, until
            first = until

    def _take(self, key: _Key, first: int, until: int, epoch: int) -> None:
        """The records of a key in one batch."""
        records, batch = self._sorted.records(first, until), self._fold.history.epochs[epoch].batch_id
        kept = self._fold.fold(key.kept, records, epoch, (key.row, first), self._found)
        self._keep(key, kept._replace(last=(batch << _RECORDS) + self._places[until - 1]))

    def _keep(self, key: _Key, kept: KeptState) -> None:
        key.kept = kept
        if kept.state is None:
            self._keeping.pop(key.number, None)
        else:
            self._keeping[key.number] = key

    def _forget(self) -> None:
        """Forget the keys whose last record came first, if there are too many."""
        most = self._fold.most
        if most is None or len(self._keeping) <= most:
            return
        for key in nsmallest(len(self._keeping) - most, self._keeping.values(), key=self._age):
            self._keep(key, KeptState(None, Wake(), key.kept.last))

    def _age(self, key: _Key) -> tuple[int, int]:
        last = key.kept.last
        return (-1, self._order[key.number]) if last is None else (last, 0)

    @cached_property
    def _places(self) -> Sequence[int]:
        """The place of each sorted row in the order in which records are read."""
        places: Sequence[int] = reading_order(self._rows)[self._sorted.order].tolist()
        return places

    @cached_property
    def _order(self) -> Sequence[int]:
        """The place of each key among all, for those of which nobody noted when their last record came."""
        first = self._rows.take(pa.array(self._sorted.order[[row for row, _ in self._spans]]))
        order: Sequence[int] = key_order(first, self._fold.keys).tolist()
        return order


def fold_together(fold: _Fold, sorted_: Sorted, rows: pa.Table, found: Found) -> None:
    """Fold the records of all keys among these rows, and forget surplus keys after each batch."""
    _Together(fold, sorted_, rows, found).run()
