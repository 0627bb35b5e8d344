"""Sessions of one key: which one a record joins, and how it merges those that it connects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.firing import Reason
from tidemill.core.ordered.kept import joined
from tidemill.core.ordered.trigger_rules import Rule
from tidemill.core.ordered.window_state import KeyWindows, OpenWindow


class Joins:
    """Finds the session of a record. Sessions of a key never touch; they stay in order of their starts."""

    __slots__ = ("_declared", "_gap", "_rule")

    def __init__(self, gap: int, declared: EventWindows, rule: Rule) -> None:
        self._gap, self._declared, self._rule = gap, declared, rule

    def session_of(self, key: KeyWindows, time: int, watermark: int) -> OpenWindow:
        """The session that a record at `time` is in, after it was extended or merged.

        A record that touches no session opens one, unless that would be closed at once; then it is late. A session is
        touched by a record up to one gap before its start and up to its end, both included.
        """
        end, sessions = time + self._gap, key.open
        first = bisect_left(sessions, time, key=lambda each: each.end)
        last = bisect_right(sessions, end, key=lambda each: each.start)
        touched = sessions[first:last]
        if not touched:
            if self._declared.is_closed(end, watermark):
                return OpenWindow(time, end, [], Reason.LATE)
            session = OpenWindow(time, end, self._rule.new())
        elif len(touched) == 1 and (touched[0].end > watermark or end <= touched[0].end):
            # No watermark has passed it, so its trigger goes on as it is.
            touched[0].start, touched[0].end = min(time, touched[0].start), max(end, touched[0].end)
            return touched[0]
        else:
            session = self._merged(touched, min(time, touched[0].start), max(end, touched[-1].end), watermark)
        sessions[first:last] = [session]
        return session

    def _merged(self, touched: list[OpenWindow], start: int, end: int, watermark: int) -> OpenWindow:
        """One session in place of these. Its indexes go on from the greatest; it is finished if all of them are."""
        live = [each for each in touched if each.refuses is None]
        if live:
            merged = OpenWindow(start, end, self._rule.merged([each.trigger for each in live], end <= watermark))
        else:
            merged = OpenWindow(start, end, [], Reason.FINISHED)
        for each in touched:
            merged.fresh += each.fresh
            merged.earlier = joined(merged.earlier, each.earlier)
            merged.held |= each.held
            merged.index = max(merged.index, each.index)
            merged.nonspeculative = max(merged.nonspeculative, each.nonspeculative)
            merged.published |= each.published
        merged.fresh.sort()
        return merged
