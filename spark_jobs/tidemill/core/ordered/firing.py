"""What a fold gives: which pieces records belong to, what fires, what is dropped, and when to look again.

A *piece* is a set of records that never needs to be divided: the engine aggregates each piece once, and merges the
pieces of each firing. Its content is fixed as soon as it was part of a firing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing

Pieces: TypeAlias = Sequence[int]
"""Ids of pieces in order: a `range` where a fold knows that they follow one another, otherwise a tuple."""

State: TypeAlias = dict[str, Any]
"""What a key keeps from batch to batch, made of what JSON has: `json.loads(json.dumps(state)) == state`."""


class Retraction(NamedTuple):
    """An earlier firing that is taken back: the pieces that were published for `window`."""

    window: Window
    pieces: Pieces


@dataclass(slots=True)
class Firing:
    """One result: what to merge and publish.

    `window` is None for buffers of records that time does not bound. `index` counts the firings of a window,
    `nonspeculative_index` those that are not EARLY, for which it is -1; both from 0. Only firings of a window count,
    and a tumbling buffer is a new window after each flush; a sliding buffer is one window until it keeps nothing.
    `is_last` says that no other firing of the window follows. `position` is the record after which it fired (before
    which, for delta policies and markers), or None if time fired it.

    `retracts` are the earlier firings to take back, of accumulating and retracting windows. `replaces` are windows
    that were published and have since become part of this one: sessions that were extended or merged.
    """

    window: Window | None
    timing: Timing
    index: int
    nonspeculative_index: int
    is_last: bool
    pieces: Pieces
    position: int | None
    retracts: tuple[Retraction, ...] = ()
    replaces: tuple[Window, ...] = ()


class Reason(StrEnum):
    """Why a record did not join a window or buffer.

    LATE: the window is closed. FINISHED: the window's trigger is finished. NO_VALUE: the attribute that a delta
    compares is null, infinite or NaN.
    """

    LATE = "late"
    FINISHED = "finished"
    NO_VALUE = "no_value"


class Dropped(NamedTuple):
    """A record that did not join one of its windows; it may have joined others. `window` is None for buffers."""

    position: int
    reason: Reason
    window: Window | None = None


class Wake(NamedTuple):
    """When a key must be folded even without records: in the batch that moves watermark or clock to these or beyond.

    None: not for that. A fold that comes too early changes nothing; one that misses the batch in which the watermark
    passes the end of a window misses its on-time firing.
    """

    watermark: int | None = None
    clock: int | None = None

    def reached(self, watermark: int, clock: int) -> bool:
        """Whether a batch that moves watermark and clock to these must fold the key."""
        by_watermark = self.watermark is not None and self.watermark <= watermark
        return by_watermark or (self.clock is not None and self.clock <= clock)


@dataclass(slots=True)
class Folded:
    """What became of the records of a key.

    `positions` and `pieces` go together: the record at `positions[i]` belongs to the piece `pieces[i]`. A record is
    there once for each piece, and not at all if it is a marker or if every window dropped it. `state` is None when the
    key has nothing to keep.
    """

    positions: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    firings: list[Firing] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    state: State | None = None
    wake: Wake = field(default_factory=Wake)
