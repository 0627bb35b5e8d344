"""What a firing of a window is made of, and what it leaves behind."""

from __future__ import annotations

from tidemill.core.ordered.accumulation import Accumulation
from tidemill.core.ordered.assigners import Sessions
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.firing import Firing, Pieces, Reason, Retraction
from tidemill.core.ordered.kept import joined, pieces_in, runs_of
from tidemill.core.ordered.window_state import OpenWindow
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing


class Fires:
    """Makes the firings of windows that were declared so."""

    __slots__ = ("_accumulates", "_empty_on_time", "_evictor", "_merges", "_retracts")

    def __init__(self, declared: EventWindows) -> None:
        self._accumulates = declared.accumulation != Accumulation.DISCARDING
        self._retracts = declared.accumulation == Accumulation.RETRACTING
        self._merges = isinstance(declared.windows, Sessions)
        self._evictor, self._empty_on_time = declared.evictor, declared.empty_on_time

    def fire(self, opened: OpenWindow, timing: Timing, position: int | None, *, is_last: bool) -> Firing | None:
        """The firing, or None if no record came since the last one and this one must not be empty."""
        if is_last:
            opened.refuses = Reason.FINISHED
        if not opened.fresh and not (timing is Timing.ON_TIME and self._empty_on_time):
            self._end(opened)
            return None
        window, pieces = Window(opened.start, opened.end), self._content(opened)
        index, nonspeculative = opened.index, opened.nonspeculative
        opened.index += 1
        if timing is Timing.EARLY:
            nonspeculative = -1
        else:
            opened.nonspeculative += 1
        firing = Firing(window, timing, index, nonspeculative, is_last, pieces, position)
        if self._merges or self._retracts:
            self._relate(opened, firing, window)
        self._end(opened)
        return firing

    def _relate(self, opened: OpenWindow, firing: Firing, window: Window) -> None:
        """Say which earlier firings this one takes back, and which windows it replaces."""
        before = opened.published
        if self._retracts:
            firing.retracts = tuple(Retraction(*each) for each in before.items())
        firing.replaces = tuple(each for each in before if each != window)
        opened.published = {window: firing.pieces if self._retracts else ()}

    def _content(self, opened: OpenWindow) -> Pieces:
        """The pieces to fire; the window keeps what accumulates."""
        if self._evictor is not None:
            return self._evicted(opened)
        pieces: Pieces
        if not self._accumulates:
            pieces = tuple(opened.fresh)
        else:
            opened.earlier = joined(opened.earlier, runs_of(opened.fresh))
            pieces = pieces_in(opened.earlier)
        opened.fresh = []
        return pieces

    def _evicted(self, opened: OpenWindow) -> Pieces:
        """The same, of pieces of one record, where an evictor leaves some out for good."""
        held = [opened.held[piece] for piece in sorted(opened.held)]
        kept = self._evictor.keep(held) if self._evictor is not None else held
        fired = held if self._evictor is not None and self._evictor.after else kept
        opened.fresh, opened.earlier = [], []
        opened.held = {each.piece: each for each in kept} if self._accumulates else {}
        return tuple(each.piece for each in fired)

    def _end(self, opened: OpenWindow) -> None:
        """A finished window keeps only that it was there; a session also what it would give to one that it joins."""
        if opened.refuses is None:
            return
        opened.fresh, opened.trigger = [], []
        if not self._merges:
            opened.earlier, opened.held, opened.published = [], {}, {}
