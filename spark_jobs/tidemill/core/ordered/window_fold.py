"""The fold of windows of event time with a trigger: a piece is what joined a window between two firings."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.ordered.assigners import Sessions, Spans
from tidemill.core.ordered.compiled_triggers import rule_of
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.evictors import DeltaEvictor, Held
from tidemill.core.ordered.firing import Dropped, Folded, Reason, State, Wake
from tidemill.core.ordered.records import Moment, Records, is_number
from tidemill.core.ordered.sessions import Joins
from tidemill.core.ordered.trigger_laws import uses_watermark
from tidemill.core.ordered.window_firing import Fires
from tidemill.core.ordered.window_state import KeyWindows, OpenWindow
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END


class _Work:
    """The fold of one key in one batch."""

    __slots__ = ("before", "folded", "key", "records")

    def __init__(self, key: KeyWindows, records: Records, before: Moment) -> None:
        self.key, self.records, self.before, self.folded = key, records, before, Folded()


class WindowFold:
    """Folds records into windows of event time."""

    def __init__(self, declared: EventWindows) -> None:
        self._declared, self._rule, self._fires = declared, rule_of(declared.trigger), Fires(declared)
        self._waits = uses_watermark(declared.trigger)
        self._holds, self._compares = declared.evictor is not None, isinstance(declared.evictor, DeltaEvictor)
        windows = declared.windows
        self._sessions = Joins(windows.micros, declared, self._rule) if isinstance(windows, Sessions) else None
        self._spans = None if isinstance(windows, Sessions) else Spans(windows)

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        key = KeyWindows(state, first_piece)
        work = _Work(key, records, before)
        if self._spans is not None:
            self._take(work, self._spans)
        elif self._sessions is not None:
            self._take_sessions(work, self._sessions)
        folded = work.folded
        self._advance(key, before.watermark, after, folded)
        folded.state, folded.wake = key.kept(), self._wake(key, after.watermark)
        return folded

    def _take(self, work: _Work, spans: Spans) -> None:
        """Each record joins the windows that contain its time."""
        key, times, watermark = work.key, work.records.times, work.before.watermark
        known = {(each.start, each.end): each for each in key.open}
        start = end = 0
        joined: list[OpenWindow] = []
        for position in self._accepted(work):
            if not start <= times[position] < end:
                start, end, windows = spans.of(times[position])
                joined = []
                for window in windows:
                    opened = known.get((window.start, window.end))
                    if opened is None:
                        opened = self._opened(key, window.start, window.end, watermark)
                        known[window.start, window.end] = opened
                    joined.append(opened)
            for opened in joined:
                self._join(work, opened, position)

    def _take_sessions(self, work: _Work, sessions: Joins) -> None:
        """Each record joins a session, which it may extend or merge with others."""
        key, times, watermark = work.key, work.records.times, work.before.watermark
        for position in self._accepted(work):
            self._join(work, sessions.session_of(key, times[position], watermark), position)

    def _opened(self, key: KeyWindows, start: int, end: int, watermark: int) -> OpenWindow:
        """A new window, or one that is only there to refuse records."""
        if self._declared.is_closed(end, watermark):
            return OpenWindow(start, end, [], Reason.LATE)
        opened = OpenWindow(start, end, self._rule.new())
        key.open.append(opened)
        return opened

    def _accepted(self, work: _Work) -> Sequence[int]:
        """The records that join windows: not those that an evictor cannot compare."""
        data, values = work.records.data(), work.records.values
        if not self._compares:
            return data
        work.folded.dropped += [Dropped(each, Reason.NO_VALUE) for each in data if not is_number(values[each])]
        return [each for each in data if is_number(values[each])]

    def _join(self, work: _Work, opened: OpenWindow, position: int) -> None:
        """A record joins a window, which may fire because of it."""
        rule, folded, fresh = self._rule, work.folded, opened.fresh
        if opened.refuses is not None:
            folded.dropped.append(Dropped(position, opened.refuses, Window(opened.start, opened.end)))
            return
        if not fresh or self._holds:
            self._begin(work, opened, position)
        folded.positions.append(position)
        folded.pieces.append(fresh[-1])
        rule.element(opened.trigger, work.before.clock)
        passed = opened.end <= work.before.watermark
        if rule.ready(opened.trigger, passed):
            is_last = rule.fired(opened.trigger, passed)
            firing = self._fires.fire(opened, Timing.LATE if passed else Timing.EARLY, position, is_last=is_last)
            if firing is not None:
                folded.firings.append(firing)

    def _begin(self, work: _Work, opened: OpenWindow, position: int) -> None:
        """A piece for the record, and for those that follow it unless an evictor looks at each."""
        piece = work.key.next_piece() if self._holds else work.key.piece_of(opened)
        opened.fresh.append(piece)
        if self._holds:
            value = work.records.values[position] if self._compares else None
            opened.held[piece] = Held(piece, work.records.times[position], value)

    def _advance(self, key: KeyWindows, watermark: int, after: Moment, folded: Folded) -> None:
        """Watermark and clock have moved: fire what they fire, and close windows."""
        left = []
        for opened in sorted(key.open, key=lambda each: (each.end, each.start)):
            closed = self._declared.is_closed(opened.end, after.watermark)
            if opened.refuses is None:
                self._elapse(opened, watermark, after, folded, closed=closed)
            if not closed:
                left.append(opened)
        key.open = left

    def _elapse(self, opened: OpenWindow, watermark: int, after: Moment, folded: Folded, *, closed: bool) -> None:
        """Fire a window if time makes its trigger ready, or because it is closed with records that did not fire yet.

        Only what time changed counts: a batch in which nothing passes leaves all triggers as records left them.
        """
        rule, end = self._rule, opened.end
        passed = end <= after.watermark
        elapsed = rule.tick(opened.trigger, after.clock)
        ready = (elapsed or watermark < end <= after.watermark) and rule.ready(opened.trigger, passed)
        if not ready and not (closed and opened.fresh):
            return
        finished = ready and rule.fired(opened.trigger, passed)
        timing = Timing.EARLY if not passed else Timing.ON_TIME if end > watermark else Timing.LATE
        firing = self._fires.fire(opened, timing, None, is_last=finished or closed)
        if firing is not None:
            folded.firings.append(firing)

    def _wake(self, key: KeyWindows, watermark: int) -> Wake:
        """When the next window ends or is closed, and when the next delay is over."""
        lateness, ends, dues = self._declared.lateness, [], []
        for opened in key.open:
            waits = self._waits and opened.end > watermark and opened.refuses is None
            ends.append(opened.end if waits else min(opened.end + lateness, END))
            if opened.refuses is None and (due := self._rule.due(opened.trigger)) is not None:
                dues.append(due)
        return Wake(min(ends, default=None), min(dues, default=None))
