"""The fold of one key: the same for every kind of buffer and window."""

from __future__ import annotations

from typing import Protocol, assert_never

from tidemill.core.ordered.buffers import SlidingBuffer, TumblingBuffer
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.firing import Folded, State
from tidemill.core.ordered.foldable import policies_of
from tidemill.core.ordered.idle_keys import ForgettingFold
from tidemill.core.ordered.policies import DeltaPolicy, TimePolicy
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.record_windows_fold import RecordWindowsFold
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.ordered.sliding import SlidingFold
from tidemill.core.ordered.sorting import SortingFold
from tidemill.core.ordered.tumbling import TumblingFold
from tidemill.core.ordered.tumbling_time import TumblingTimeFold
from tidemill.core.ordered.window_fold import WindowFold


class Machine(Protocol):
    """Folds the records of one key after another; it keeps nothing of a key itself."""

    def fold(
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        """Take the records of a batch, then let time pass once.

        Results are the same wherever batches are cut, except through the moments.

        Args:
            state: what the last fold of this key gave; it may have been JSON in between.
            records: the records of the key, which may be none.
            before: the watermark by which records are late, and the clock at which they arrived.
            after: watermark and clock once the records are there; at least `before`.
            first_piece: new pieces get this id or greater ones. Ids differ within a batch and from those in the state;
                a key without state begins again here.

        Raises:
            Incompatible: the state is of another kind of machine, or of a newer version.
        """
        ...


def machine_of(declared: SelfFiring | EventWindows) -> Machine:
    """The machine that does what was declared."""
    machine = _machine_of(declared)
    if not isinstance(declared, TumblingBuffer | SlidingBuffer):
        return machine
    if declared.sorts:
        compares = any(isinstance(policy, DeltaPolicy) for policy in policies_of(declared))
        return SortingFold(machine, compares=compares)
    return machine if declared.timeout is None else ForgettingFold(machine, declared.timeout)


def _machine_of(declared: SelfFiring | EventWindows) -> Machine:
    match declared:
        case EventWindows():
            return WindowFold(declared)
        case SlidingBuffer():
            return SlidingFold(declared)
        case RecordWindows():
            return RecordWindowsFold(declared)
        case TumblingBuffer():
            flush = declared.flush
            if isinstance(flush, TimePolicy):
                return TumblingTimeFold(flush, emit_empty=declared.emit_empty)
            return TumblingFold(flush)
        case _:
            assert_never(declared)
