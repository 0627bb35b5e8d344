"""Folds the records of each key in their order (`tidemill.core.ordered`): in Spark's Python workers, or in the driver.

It works on all rows of a key together, one partition of keys at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.ordered.firing import Wake
from tidemill.core.ordered.foldable import Ordered, sorts
from tidemill.core.ordered.idle_keys import ForgettingFold
from tidemill.core.ordered.machine import Machine, machine_of
from tidemill.core.ordered.records import Records
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.aggregate.fold_rows import Found, KeptState, Sorted
from tidemill.engine.aggregate.surplus_fold import fold_together

_decode = msgspec.json.Decoder().decode

_PIECES = 31
"""New pieces of a batch have ids from its number times two to the power of this."""

_NEVER = Wake()


@dataclass(frozen=True, kw_only=True)
class OrderedFold:
    """How records become pieces and firings of a `window`. `columns` are those of records that leave it.

    `marked` says that some records are markers. Where keys may be too many, `together` says that all of them are folded
    here, batch by batch, and `most` how many may keep something after a batch; None: whoever folds forgets the others.

    Input rows have the columns `keys`, `KEPT`, and, unless all rows are about what keys kept, those of records with
    `VALUE` and `MARKER`. There is at most one row with something in `KEPT` for each key.
    """

    keys: tuple[str, ...]
    window: Ordered
    history: History
    columns: tuple[str, ...]
    marked: bool = False
    together: bool = False
    most: int | None = None

    def of_partition(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """`over` for one partition of keys in a Python worker."""
        together = list(batches)
        if together:
            yield from self.over(pa.Table.from_batches(together)).to_batches()

    def over(self, rows: pa.Table) -> pa.Table:
        """Records with their pieces, then what keys keep, then firings: with `ROW`, `PIECE` and `TOLD`."""
        found = Found()
        sorted_ = Sorted.of(rows, self.keys, self.history, marked=self.marked, placed=sorts(self.window))
        if self.together:
            fold_together(self, sorted_, rows, found)
        else:
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

    def _fold_key(self, rows: Sorted, first: int, last: int, found: Found) -> None:
        """The rows of one key, from `first` to `last`, epoch by epoch; time passes in between."""
        (kept, first), at, row = self.begun(rows, first), 0, first
        before = kept
        for epoch, stretch in rows.stretches(first, last):
            kept, at = self._let_time_pass(kept, at, epoch, row, found)
            kept = self.fold(kept, rows.records(*stretch), epoch, (row, stretch[0]), found)
            at = epoch + 1
        kept, _ = self._let_time_pass(kept, at, len(self.history.epochs), row, found)
        if kept is not before:
            found.key(row, kept)

    def begun(self, rows: Sorted, first: int) -> tuple[KeptState, int]:
        """What the key whose rows begin at `first` kept, and where its records begin."""
        if (told := rows.kept[first]) is None:
            return KeptState(None, _NEVER), first
        read, machine = _decode(told), self._machine
        wake = Wake(*read["wake"])
        if isinstance(machine, ForgettingFold):
            # The declaration may have had another timeout then, or none.
            wake = machine.woken(read["state"], wake)
        return KeptState(read["state"], wake, read.get("last")), first + 1

    def _let_time_pass(self, kept: KeptState, at: int, until: int, row: int, found: Found) -> tuple[KeptState, int]:
        """Fold without records in each epoch before `until` that the key waits for."""
        if kept.wake == _NEVER:
            return kept, at
        while (woken := self._next_wake(kept.wake, at, until)) is not None:
            kept = self.fold(kept, Records(), woken, (row, row), found)
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

    def fold(self, kept: KeptState, records: Records, epoch: int, rows: tuple[int, int], found: Found) -> KeptState:
        """Fold these records of a key in this epoch, and let time pass in it; `rows` has those of key and records."""
        now = self.history.epochs[epoch]
        folded = self._machine.fold(kept.state, records, now.before, now.after, now.batch_id << _PIECES)
        found.add(folded, *rows)
        return KeptState(folded.state, folded.wake, kept.last)
