"""Which windows a record belongs to: aligned ones by arithmetic, sessions by the gaps between records."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeAlias

from tidemill.core.time.panes import Window
from tidemill.core.time.times import duration, micros, positive_duration, show_duration


class Assigner(Protocol):
    """The arithmetic of aligned windows, whose ends come in the order of their starts."""

    def windows_of(self, time: int) -> tuple[Window, ...]:
        """Every window that contains `time`, earliest first; at least one."""
        ...


@dataclass(frozen=True, slots=True)
class Sessions:
    """Windows that end when no record came for a while: records at most `gap` apart are of one session.

    A session ends `gap` after its last record, exclusive. A record between two sessions merges them.

    Args:
        gap: longer than nothing.

    Raises:
        DeclarationError: the gap is no such duration.
    """

    gap: str | timedelta

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", positive_duration(self.gap, "the gap of sessions"))

    @property
    def micros(self) -> int:
        """The gap in microseconds."""
        return micros(duration(self.gap))

    def __str__(self) -> str:
        return f"sessions with a gap of {show_duration(duration(self.gap))}"


Span: TypeAlias = tuple[int, int, tuple[Window, ...]]
"""Times from the first to the second number, half-open, which all have these windows."""

_MOST_SPANS = 10_000


class Spans:
    """Asks an assigner once for all times that have the same windows, and remembers the answers for other keys."""

    __slots__ = ("_assigner", "_known", "_starts")

    def __init__(self, assigner: Assigner) -> None:
        self._assigner, self._known, self._starts = assigner, list[Span](), list[int]()

    def of(self, time: int) -> Span:
        """A span around `time`."""
        at = bisect_right(self._starts, time)
        if at and time < self._known[at - 1][1]:
            return self._known[at - 1]
        span = self._span(time)
        if len(self._known) >= _MOST_SPANS:
            self._known, self._starts, at = [], [], 0
        self._known.insert(at, span)
        self._starts.insert(at, span[0])
        return span

    def _span(self, time: int) -> Span:
        """The whole span of windows that overlap no others. Of other windows it is unknown where they overlap.

        Ends of windows come in the order of their starts, so a time between two with the same windows has them, too.
        """
        windows_of = self._assigner.windows_of
        windows = windows_of(time)
        start, end = windows[-1].start, windows[0].end
        if windows_of(start) == windows:
            return start, end if windows_of(end - 1) == windows else time + 1, windows
        return time, end if windows_of(end - 1) == windows else time + 1, windows
