"""The kinds of windows of event time that a pipeline can declare."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tidemill.core.errors import DeclarationError
from tidemill.core.time.calendar import CalendarPanes, CalendarUnit
from tidemill.core.time.panes import EvenPanes, OnePane
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.times import duration, micros, positive_duration, show_duration, signed_duration

MAX_PANES_PER_WINDOW = 10_000

_OF_ONE_MACHINE = re.compile(r"localtime|posixrules|Factory|(posix|right)/.*")
"""Names that a machine may have for its own settings and copies; Java does not know them."""


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
    def panes(self) -> EvenPanes:
        """The arithmetic of these windows."""
        size = micros(duration(self.size))
        return EvenPanes(size=size, slide=size, offset=micros(signed_duration(self.offset)) % size)

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
    def panes(self) -> EvenPanes:
        """The arithmetic of these windows."""
        slide = micros(duration(self.slide))
        offset = micros(signed_duration(self.offset)) % slide
        return EvenPanes(size=micros(duration(self.size)), slide=slide, offset=offset)

    def __str__(self) -> str:
        size, slide = show_duration(duration(self.size)), show_duration(duration(self.slide))
        return f"sliding {size} by {slide}{_aligned(self.offset)}"


def _aligned(offset: str | timedelta) -> str:
    value = signed_duration(offset)
    return f" from {show_duration(value)}" if value else ""


@dataclass(frozen=True, slots=True)
class Calendar:
    """Windows of the calendar in a time zone: the days, weeks, months, quarters or years of its people.

    Args:
        unit: "day", "week" (from Monday), "month", "quarter" or "year".
        zone: the name of the time zone, such as "Europe/Berlin". Days have 23 or 25 hours when its clocks change.

    Raises:
        DeclarationError: there is no such unit or time zone.
    """

    unit: str
    zone: str = "UTC"

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "unit", CalendarUnit(self.unit))
        except ValueError:
            known = ", ".join(f'"{each.value}"' for each in CalendarUnit)
            raise DeclarationError(f"the unit of a calendar window is one of {known}, found {self.unit!r}") from None
        _check_zone(self.zone)

    @property
    def panes(self) -> CalendarPanes:
        """The arithmetic of these windows."""
        return CalendarPanes(unit=CalendarUnit(self.unit), zone=self.zone)

    def __str__(self) -> str:
        return f"each {CalendarUnit(self.unit).value} in {self.zone}"


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that records of one key make: a session goes on as long as no gap between records is longer.

    A session ends one gap after its last record. An event exactly one gap after the last one still belongs to it.

    Args:
        gap: the longest time without a record inside a session, longer than zero.

    Raises:
        DeclarationError: the gap is no such duration.
    """

    gap: str | timedelta

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", positive_duration(self.gap, "the gap of a session"))

    @property
    def panes(self) -> SessionPanes:
        """The arithmetic of the sessions of single records."""
        return SessionPanes(gap=micros(duration(self.gap)))

    def __str__(self) -> str:
        return f"sessions with a gap of {show_duration(duration(self.gap))}"


@dataclass(frozen=True, slots=True)
class Global:
    """One window for all event times, which never ends. Rows aggregated without a window are in it.

    No watermark passes its end: with `AfterWatermark()`, `DefaultTrigger()` or `Never()` nothing fires before the log
    ends (`run --drain`).
    """

    @property
    def panes(self) -> OnePane:
        """The arithmetic of this window."""
        return OnePane()

    def __str__(self) -> str:
        return "no window: all event times"


def _check_zone(name: object) -> None:
    of_one_machine = _OF_ONE_MACHINE.fullmatch(str(name))
    try:
        if not of_one_machine and ZoneInfo(name):  # type: ignore[arg-type]
            return
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        pass
    known = {} if of_one_machine else {each.lower(): each for each in available_timezones()}
    close = known.get(str(name).lower()) or next(iter(get_close_matches(str(name), known.values(), n=1)), None)
    raise DeclarationError(
        f"there is no time zone {name!r}",
        fix=f'write "{close}"' if close else 'write a name of the IANA time zone database, such as "Europe/Berlin"',
    )


WindowSpec = Tumbling | Sliding | Calendar | Session | Global
