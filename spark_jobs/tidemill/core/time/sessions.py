"""Sessions: windows that records of one key make, as long as no gap between them is longer than the session's.

A record at `t` alone makes the session `[t, t + gap)`. Sessions that overlap or touch are one session, whichever batch
brought their records: an event exactly `gap` after another still belongs to its session. A record is late when the
session that it alone makes is closed, `t + gap + allowed_lateness <= W`. So which records count never depends on other
records, and sessions are the same however batches cut the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.time.panes import Panes, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPanes(Panes):
    """The sessions that single records make. A pane of state is a session that records of one batch and key make.

    Windows of this arithmetic are numbered by their start in microseconds.
    """

    gap: int

    @property
    def longest(self) -> int:
        """The length of the session of one record; records may make it longer without bound."""
        return self.gap

    def number_of(self, time: int) -> int:
        """The number of the session that a record at `time` makes."""
        return time

    def window(self, number: int) -> Window:
        """The session of one record."""
        return Window(number, number + self.gap)

    def first_number_of(self, time: int) -> int:
        """The number of the earliest session of one record that ends after `time`."""
        return time - self.gap + 1

    def windows_of(self, time: int) -> tuple[Window, ...]:
        """The one session that a record at `time` makes."""
        return (self.window(time),)

    def pane_of(self, time: int) -> int:
        """The start of the session that a record at `time` makes."""
        return time

    def panes_between(self, first: int, last: int) -> int:
        """How many sessions of one record fit between two starts, both included."""
        return (last - first) // self.gap + 1

    def open_from(self, watermark: int, allowed_lateness: int) -> int:
        """An event time: no record that is not late may join a session that ends before it."""
        return watermark - allowed_lateness - self.gap + 1


def merged(windows: Iterable[Window]) -> tuple[Window, ...]:
    """These windows of one key, with those that overlap or touch joined into one, in the order of their starts."""
    found: list[Window] = []
    for window in sorted(windows):
        if found and window.start <= found[-1].end:
            found[-1] = Window(found[-1].start, max(found[-1].end, window.end))
        else:
            found.append(window)
    return tuple(found)
