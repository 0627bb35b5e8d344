"""Windows of event time, and the panes they are made of.

A window is half-open, `[start, end)`, in microseconds since 1970. State is kept for each *pane*, a piece of event time
whose length is the greatest common divisor of the windows' size and slide. So every window is a whole number of panes,
and a record is aggregated once, however many sliding windows contain it (stream slicing: Traub et al., "Scotty", ICDE
2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta

from tidemill.core.errors import DeclarationError
from tidemill.core.time.times import duration, micros, positive_duration, show_duration, signed_duration

MAX_PANES_PER_WINDOW = 10_000


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The event times `start <= t < end`."""

    start: int
    end: int

    def __contains__(self, time: object) -> bool:
        return isinstance(time, int) and self.start <= time < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Panes:
    """The arithmetic of windows of one size and slide, in microseconds.

    Windows start at `offset + k * slide` for every integer k, before 1970 too; panes start at
    `offset + k * pane`.
    """

    size: int
    slide: int
    offset: int = 0

    @property
    def pane(self) -> int:
        """The length of a pane."""
        return math.gcd(self.size, self.slide)

    @property
    def overlap(self) -> int:
        """The most windows that one pane belongs to: 1 for tumbling windows."""
        return -(-self.size // self.slide)

    def pane_of(self, time: int) -> int:
        """The start of the pane that contains `time`; rounded down, also before 1970."""
        return time - (time - self.offset) % self.pane

    def last_window_of(self, time: int) -> Window:
        """The latest window that contains `time`."""
        start = time - (time - self.offset) % self.slide
        return Window(start, start + self.size)

    def windows_of(self, time: int) -> tuple[Window, ...]:
        """Every window that contains `time`, earliest first; at least one, since slide <= size."""
        last = self.last_window_of(time).start
        count = (self.size - (time - last) - 1) // self.slide
        starts = range(last - count * self.slide, last + 1, self.slide)
        return tuple(Window(start, start + self.size) for start in starts)

    def panes_of(self, window: Window) -> range:
        """The starts of the panes that make up `window`."""
        return range(window.start, window.end, self.pane)

    def is_late(self, time: int, *, watermark: int, allowed_lateness: int) -> bool:
        """Whether every window of `time` refuses it: `end + allowed_lateness <= watermark` for the last one."""
        return self.last_window_of(time).end + allowed_lateness <= watermark


@dataclass(frozen=True, slots=True)
class Tumbling:
    """Windows of one size, one after the other.

    Args:
        size: the length of a window, longer than zero.
        offset: how long after 1970-01-01T00:00Z a window starts; all others are aligned to it. May be negative.

    Raises:
        DeclarationError: the size or the offset is no such duration.
    """

    size: str | timedelta
    offset: str | timedelta = field(default=timedelta(0), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", positive_duration(self.size, "the size of a window"))
        object.__setattr__(self, "offset", signed_duration(self.offset, "the offset of a window"))

    @property
    def panes(self) -> Panes:
        """The arithmetic of these windows."""
        size = micros(duration(self.size))
        return Panes(size=size, slide=size, offset=micros(signed_duration(self.offset)) % size)

    def __str__(self) -> str:
        return f"tumbling {show_duration(duration(self.size))}{_aligned(self.offset)}"


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows of one size that start at a fixed interval, and may overlap.

    Args:
        size: the length of a window, longer than zero.
        slide: the time from one start to the next, longer than zero and at most `size`, so that every record is in a
            window. It need not divide the size.
        offset: how long after 1970-01-01T00:00Z a window starts; all others are aligned to it. May be negative.

    Raises:
        DeclarationError: a duration is not valid, the slide is longer than the size, or a window has more than
            10,000 panes. A pane is the greatest common divisor of size and slide.
    """

    size: str | timedelta
    slide: str | timedelta
    offset: str | timedelta = field(default=timedelta(0), kw_only=True)

    def __post_init__(self) -> None:
        size, slide = (
            positive_duration(self.size, "the size of a window"),
            positive_duration(self.slide, "the slide of a window"),
        )
        offset = signed_duration(self.offset, "the offset of a window")
        for name, value in (("size", size), ("slide", slide), ("offset", offset)):
            object.__setattr__(self, name, value)
        if slide > size:
            raise DeclarationError(
                f"slide {show_duration(slide)} is longer than size {show_duration(size)}: records between two "
                "windows would be lost",
                fix=f'write Sliding("{show_duration(slide)}", "{show_duration(size)}"), or Tumbling',
            )
        if self.panes.size // self.panes.pane > MAX_PANES_PER_WINDOW:
            raise DeclarationError(
                f"a window of {show_duration(size)} sliding by {show_duration(slide)} has "
                f"{self.panes.size // self.panes.pane:,} panes, more than {MAX_PANES_PER_WINDOW:,}",
                fix="choose a slide with a larger common divisor with the size",
            )

    @property
    def panes(self) -> Panes:
        """The arithmetic of these windows."""
        slide = micros(duration(self.slide))
        return Panes(size=micros(duration(self.size)), slide=slide, offset=micros(signed_duration(self.offset)) % slide)

    def __str__(self) -> str:
        size, slide = show_duration(duration(self.size)), show_duration(duration(self.slide))
        return f"sliding {size} by {slide}{_aligned(self.offset)}"


def _aligned(offset: str | timedelta) -> str:
    value = signed_duration(offset)
    return f" from {show_duration(value)}" if value else ""


WindowSpec = Tumbling | Sliding
