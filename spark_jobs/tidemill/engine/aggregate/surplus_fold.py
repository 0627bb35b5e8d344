"""Folds the keys of a table together, batch by batch, where there may be more keys than the table keeps.

Which keys are forgotten follows from the records of all others. So all keys are folded in one place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from itertools import islice
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.ordered.firing import Wake
from tidemill.core.ordered.records import Moment, Records
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.aggregate.fold_rows import Found, KeptState, Sorted, Stretch, places_in_batches, sorted_by

_RECORDS = 31
"""Two to the power of this is more than the records of a batch."""


class _KeyFold(Protocol):
    """The fold of one key (`tidemill.engine.aggregate.ordered_fold.OrderedFold`)."""

    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def history(self) -> History: ...
    @property
    def most(self) -> int | None: ...
    def begun(self, rows: Sorted, first: int) -> tuple[KeptState, int]: ...
    def fold(self, kept: KeptState, records: Records, epoch: int, rows: tuple[int, int], found: Found) -> KeptState: ...


_Wait = tuple[int, int]
"""A watermark or clock, and the number of the key that waits for it."""


class _Key:
    """A key: the first of its sorted rows, what it kept, what it keeps, and where its records begin."""

    __slots__ = ("before", "first", "kept", "row")

    def __init__(self, row: int, kept: KeptState, first: int) -> None:
        self.row, self.before, self.kept, self.first = row, kept, kept, first


class _Wakes:
    """The keys that wait for a watermark or a clock; heaps keep entries of former wakes until these have come."""

    def __init__(self, keys: Iterable[tuple[int, _Key]]) -> None:
        self._waits: tuple[list[_Wait], list[_Wait]] = ([], [])
        for number, key in keys:
            self.add(number, key.kept.wake)

    def add(self, number: int, wake: Wake) -> None:
        """A key waits for this from now on."""
        for heap, at in zip(self._waits, wake, strict=True):
            if at is not None:
                heappush(heap, (at, number))

    def reached(self, now: Moment) -> set[int]:
        """The keys that may have waited for what has come."""
        found = set[int]()
        for heap, come in zip(self._waits, now, strict=True):
            while heap and heap[0][0] <= come:
                found.add(heappop(heap)[1])
        return found


class _Together:
    """The keys of a table while they are folded. `_keeping` has those that keep something, by their last record."""

    def __init__(self, fold: _KeyFold, sorted_: Sorted, rows: pa.Table, found: Found) -> None:
        self._fold, self._sorted, self._found = fold, sorted_, found
        self._spans = list(sorted_.spans())
        self._keys = [_Key(row, *fold.begun(sorted_, row)) for row, _ in self._spans]
        self._places = places_in_batches(rows, fold.history)[sorted_.order]
        of_keys = rows.select(list(fold.keys)).take(pa.array(sorted_.order[[row for row, _ in self._spans]]))
        lasts = pa.array([key.kept.last for key in self._keys], pa.int64())
        by_last = sorted_by(of_keys.append_column("", lasts), ["", *fold.keys]).tolist()
        self._keeping = {n: self._keys[n] for n in by_last if self._keys[n].kept.state is not None}
        self._wakes = _Wakes(self._keeping.items())

    def run(self) -> None:
        """Fold all batches, and tell what each key keeps that was folded or forgotten."""
        touched = self._touched()
        for epoch, batch in enumerate(self._fold.history.epochs):
            records = touched.get(epoch, {})
            for number in sorted(self._wakes.reached(batch.after) - records.keys()):
                self._let_time_pass(number, epoch)
            for number in sorted(records, key=lambda each: int(self._places[records[each][1] - 1])):
                self._take(number, records[number], epoch)
            self._forget()
        for key in self._keys:
            if key.kept is not key.before:
                self._found.key(key.row, key.kept)

    def _touched(self) -> Mapping[int, Mapping[int, Stretch]]:
        """For each epoch and key, where its records are."""
        found: dict[int, dict[int, Stretch]] = defaultdict(dict)
        for number, (key, (_, last)) in enumerate(zip(self._keys, self._spans, strict=True)):
            for epoch, stretch in self._sorted.stretches(key.first, last):
                found[epoch][number] = stretch
        return found

    def _let_time_pass(self, number: int, epoch: int) -> None:
        """Fold a key without records, if it waits for this batch."""
        key = self._keys[number]
        if key.kept.wake.reached(*self._fold.history.epochs[epoch].after):
            self._keep(number, self._fold.fold(key.kept, Records(), epoch, (key.row, key.row), self._found))

    def _take(self, number: int, stretch: Stretch, epoch: int) -> None:
        """Fold the records of a key in one batch: no other key had a later one until now."""
        key, (first, until) = self._keys[number], stretch
        kept = self._fold.fold(key.kept, self._sorted.records(first, until), epoch, (key.row, first), self._found)
        batch = self._fold.history.epochs[epoch].batch_id
        self._keeping.pop(number, None)
        self._keep(number, kept._replace(last=(batch << _RECORDS) + int(self._places[until - 1])))

    def _keep(self, number: int, kept: KeptState) -> None:
        key = self._keys[number]
        key.kept = kept
        if kept.state is None:
            self._keeping.pop(number, None)
        else:
            self._keeping[number] = key
            self._wakes.add(number, kept.wake)

    def _forget(self) -> None:
        """Forget the keys whose last record came first, if there are too many."""
        if self._fold.most is not None:
            for number in list(islice(self._keeping, max(0, len(self._keeping) - self._fold.most))):
                self._keep(number, KeptState(None, Wake(), self._keys[number].kept.last))


def fold_together(fold: _KeyFold, sorted_: Sorted, rows: pa.Table, found: Found) -> None:
    """Fold the records of all keys among these rows, and forget surplus keys after each batch."""
    _Together(fold, sorted_, rows, found).run()
