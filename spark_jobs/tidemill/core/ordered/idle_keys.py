"""Forgets keys that had no record for long, whatever folds their records."""

from __future__ import annotations

from typing import Protocol

from tidemill.core.ordered.firing import Folded, State, Wake
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.watermarks import BEGINNING

_USED = "used"
"""What a state has besides that of the fold: the clock at which the last record of the key arrived, in microseconds."""


class Fold(Protocol):
    """Folds the records of one key (`tidemill.core.ordered.machine`)."""

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded: ...


class ForgettingFold:
    """Folds as `inner` does, and forgets a key once the clock of batches is later than its last record by `timeout`.

    Time passes for the key up to that moment, and not beyond it: what is due until then fires. The next record begins
    anew. A state without a clock, from before the declaration had a timeout, counts as used when it is first looked at.
    """

    def __init__(self, inner: Fold, timeout: int) -> None:
        self._inner, self._timeout = inner, timeout

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        used = before.clock if state is None else state.get(_USED, before.clock)
        if before.clock - used > self._timeout:
            due = self._until(state, used, before, before, Records(), first_piece)
            folded = self._until(None, before.clock, before, after, records, first_piece)
            folded.firings[:0] = due.firings
            return folded
        used = max(used, before.clock) if records.times else used
        return self._until(state, used, before, after, records, first_piece)

    def woken(self, state: State | None, wake: Wake) -> Wake:
        """When a key must be looked at that a batch before left with this `wake`, perhaps by another declaration.

        One whose clock nobody noted yet must be looked at in any batch: its time begins then.
        """
        if state is None:
            return wake
        clock = state[_USED] + self._timeout + 1 if _USED in state else BEGINNING
        return Wake(wake.watermark, clock if wake.clock is None else min(wake.clock, clock))

    def _until(  # noqa: PLR0913, PLR0917  a fold, and when the key was used
        self,
        state: State | None,
        used: int,
        before: Moment,
        after: Moment,
        records: Records,
        first_piece: int,
    ) -> Folded:
        """The fold of a key whose last record came at `used`, up to when the key is forgotten."""
        last = used + self._timeout
        folded = self._inner.fold(state, records, before, Moment(after.watermark, min(after.clock, last)), first_piece)
        if folded.state is None or after.clock > last:
            folded.state, folded.wake = None, Wake()
            return folded
        clock = last + 1 if folded.wake.clock is None else min(folded.wake.clock, last + 1)
        folded.state, folded.wake = {**folded.state, _USED: used}, Wake(folded.wake.watermark, clock)
        return folded
