"""The arithmetic of calendar windows: days, weeks, months, quarters and years as people in a time zone count them.

A window starts at midnight of the zone, on the first day of its unit; weeks start on Monday. It ends where the next one
starts, so a day has 23 or 25 hours when the clocks change. Where a clock change skips midnight, the day starts when
midnight would have been by the clock before the change. Where it repeats midnight, the day starts at the first one.
Java's `LocalDateTime.atZone` and Python's `zoneinfo` with `fold=0` both do that, so Spark and Python agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from functools import lru_cache
from typing import assert_never
from zoneinfo import ZoneInfo

from tidemill.core.time.panes import Panes, Window
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END

_DAY = 86_400_000_000
_FIRST, _LAST = (micros(datetime(year, 1, day, tzinfo=UTC)) for year, day in ((1, 8), (9998, 12)))
"""Event times before and after these lie in the same window; a margin for time zones."""


class CalendarUnit(StrEnum):
    """How long a window of the calendar is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"

    @property
    def longest(self) -> int:
        """The most days of such a window."""
        return {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}[self.value]

    def number_of(self, day: date) -> int:
        """The number of the window that contains a day, counted from year 1."""
        match self:
            case CalendarUnit.DAY:
                return day.toordinal()
            case CalendarUnit.WEEK:
                # Day 1 of year 1 was a Monday.
                return (day.toordinal() - 1) // 7
            case CalendarUnit.MONTH:
                return day.year * 12 + day.month - 1
            case CalendarUnit.QUARTER:
                return day.year * 4 + (day.month - 1) // 3
            case CalendarUnit.YEAR:
                return day.year
            case _:
                assert_never(self)

    def first_day(self, number: int) -> date:
        """The first day of the window with this number."""
        match self:
            case CalendarUnit.DAY:
                return date.fromordinal(number)
            case CalendarUnit.WEEK:
                return date.fromordinal(number * 7 + 1)
            case CalendarUnit.MONTH:
                return date(number // 12, number % 12 + 1, 1)
            case CalendarUnit.QUARTER:
                return date(number // 4, number % 4 * 3 + 1, 1)
            case CalendarUnit.YEAR:
                return date(number, 1, 1)
            case _:
                assert_never(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarPanes(Panes):
    """The windows of one unit in one time zone. A pane is a whole window.

    Windows are told apart from year 1 to year 9999; event times lie well inside.
    """

    unit: CalendarUnit
    zone: str

    @property
    def longest(self) -> int:
        """The most microseconds of such a window, with two days of margin for changes of the zone's clock."""
        return (self.unit.longest + 2) * _DAY

    def number_of(self, time: int) -> int:
        """The number of the window that contains `time`, counted from year 1."""
        at = moment(min(max(time, _FIRST), _LAST))
        number = self.unit.number_of(at.astimezone(_zone(self.zone)).date())
        # A clock change near midnight can show another day than the one that the time belongs to.
        if self._start(number) > time:
            return number - 1
        return number + 1 if self._start(number + 1) <= time < _LAST else number

    def window(self, number: int) -> Window:
        """The window with this number."""
        return Window(self._start(number), self._start(number + 1))

    def pane_of(self, time: int) -> int:
        """The start of the window that contains `time`."""
        return self.last_window_of(time).start

    def panes_between(self, first: int, last: int) -> int:
        """How many windows start from `first` to `last`, both included."""
        return self.windows_between(first, last)

    def _start(self, number: int) -> int:
        return _start_of(self.unit, self.zone, number)


@lru_cache(maxsize=4096)
def _start_of(unit: CalendarUnit, zone: str, number: int) -> int:
    """The start of a window in microseconds; the beginning or the end of time if it is not between years 1 and 9999."""
    try:
        return micros(datetime.combine(unit.first_day(number), time(), tzinfo=_zone(zone)).astimezone(UTC))
    except (ValueError, OverflowError):
        return BEGINNING if number <= unit.number_of(date.min) else END


@lru_cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
