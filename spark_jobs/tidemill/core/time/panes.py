"""The arithmetic of windows of event time, and of the panes that they are made of.

A window is half-open, `[start, end)`, in microseconds since 1970. Every event time is in at least one window. Windows
have consecutive numbers, in the order of their starts, which is also the order of their ends. State is kept for each
*pane*, a piece of event time that no window divides, so a record is aggregated once, however many windows contain it
(stream slicing: Traub et al., "Scotty", ICDE 2018).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from tidemill.core.time.watermarks import BEGINNING, END


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The event times `start <= t < end`."""

    start: int
    end: int

    def __contains__(self, time: object) -> bool:
        return isinstance(time, int) and self.start <= time < self.end


class Panes(ABC):
    """How event time is divided into windows and panes. All times are microseconds since 1970."""

    __slots__ = ()

    @property
    @abstractmethod
    def longest(self) -> int:
        """No window is longer than this; 0 where windows have no bounds."""

    @property
    def overlap(self) -> int:
        """The most windows that one pane belongs to."""
        return 1

    @abstractmethod
    def number_of(self, time: int) -> int:
        """The number of the latest window that contains `time`."""

    @abstractmethod
    def window(self, number: int) -> Window:
        """The window with this number."""

    @abstractmethod
    def pane_of(self, time: int) -> int:
        """The start of the pane that contains `time`."""

    @abstractmethod
    def panes_between(self, first: int, last: int) -> int:
        """How many panes start from `first` to `last`, both included; both are starts of panes."""

    def first_number_of(self, time: int) -> int:
        """The number of the earliest window that contains `time`: the first that ends after it."""
        number = self.number_of(time)
        while self.window(number - 1).end > time:
            number -= 1
        return number

    def last_window_of(self, time: int) -> Window:
        """The latest window that contains `time`."""
        return self.window(self.number_of(time))

    def windows_of(self, time: int) -> tuple[Window, ...]:
        """Every window that contains `time`, earliest first; at least one."""
        return tuple(map(self.window, range(self.first_number_of(time), self.number_of(time) + 1)))

    def end_of(self, start: int) -> int:
        """The end of the window that starts at `start`."""
        return self.last_window_of(start).end

    def first_ending_after(self, time: int) -> Window:
        """The earliest window that ends after `time`."""
        return self.window(self.first_number_of(time))

    def last_ending_by(self, time: int) -> Window:
        """The latest window that ends at `time` or earlier."""
        return self.window(self.first_number_of(time) - 1)

    def first_starting_at(self, time: int) -> Window:
        """The earliest window that starts at `time` or later."""
        return self.window(self.number_of(time - 1) + 1)

    def neighbour(self, start: int, steps: int) -> int:
        """The start of the window that comes `steps` after the one that starts at `start`; before it if negative."""
        return self.window(self.number_of(start) + steps).start

    def windows_between(self, first: int, last: int) -> int:
        """How many windows start from `first` to `last`, both included; both are starts of windows."""
        return self.number_of(last) - self.number_of(first) + 1

    def holds_window(self, low: int, high: int) -> bool:
        """Whether some window lies completely inside `[low, high)`."""
        return self.last_ending_by(high).start >= low

    def is_late(self, time: int, *, watermark: int, allowed_lateness: int) -> bool:
        """Whether every window of `time` refuses it: `end + allowed_lateness <= watermark` for the last one."""
        return self.last_window_of(time).end + allowed_lateness <= watermark


@dataclass(frozen=True, slots=True, kw_only=True)
class EvenPanes(Panes):
    """Windows of one size that start at `offset + k * slide` for every integer k, before 1970 too.

    A pane is as long as the greatest common divisor of size and slide; panes start at `offset + k * pane`.
    """

    size: int
    slide: int
    offset: int = 0

    @property
    def longest(self) -> int:
        """The size of a window."""
        return self.size

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return math.gcd(self.size, self.slide)

    @property
    def overlap(self) -> int:
        """The most windows that one pane belongs to: 1 for tumbling windows."""
        return -(-self.size // self.slide)

    def number_of(self, time: int) -> int:
        """The number of the latest window that contains `time`; rounded down, also before 1970."""
        return (time - self.offset) // self.slide

    def window(self, number: int) -> Window:
        """The window with this number."""
        start = self.offset + number * self.slide
        return Window(start, start + self.size)

    def first_number_of(self, time: int) -> int:
        """The number of the earliest window that contains `time`."""
        return (time - self.offset - self.size) // self.slide + 1

    def pane_of(self, time: int) -> int:
        """The start of the pane that contains `time`; rounded down, also before 1970."""
        return time - (time - self.offset) % self.pane

    def panes_of(self, window: Window) -> range:
        """The starts of the panes that make up `window`."""
        return range(window.start, window.end, self.pane)

    def panes_between(self, first: int, last: int) -> int:
        """How many panes start from `first` to `last`, both included."""
        return (last - first) // self.pane + 1


@dataclass(frozen=True, slots=True)
class OnePane(Panes):
    """One window that holds all event times and never ends; its state is one pane, which starts in 1970."""

    @property
    def longest(self) -> int:
        """Always 0: the window has no bounds."""
        return 0

    def number_of(self, time: int) -> int:
        """Always 0."""
        return 0

    def window(self, number: int) -> Window:
        """The window of all times for 0; empty windows before and after it for other numbers."""
        match (number > 0) - (number < 0):
            case 0:
                return Window(BEGINNING, END)
            case 1:
                return Window(END, END)
            case _:
                return Window(BEGINNING - 1, BEGINNING - 1)

    def first_number_of(self, time: int) -> int:
        """0 for each time but the end of time, which the window does not contain."""
        return 0 if time < END else 1

    def pane_of(self, time: int) -> int:
        """Always 0."""
        return 0

    def panes_between(self, first: int, last: int) -> int:
        """Always 1."""
        return 1
