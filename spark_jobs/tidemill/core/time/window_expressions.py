"""The arithmetic of windows as Spark SQL: what `Panes` and `Firing` say of one moment, said of a column.

`time` is an SQL expression for microseconds since 1970. `pmod` floors below zero, as Python's `%` does.
"""

from __future__ import annotations

from tidemill.core.sql.text import text_literal
from tidemill.core.time.calendar import CalendarPanes, CalendarUnit
from tidemill.core.time.panes import EvenPanes, Panes
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.watermarks import END

BOUNDS = ("_before", "_after", "_refused_until", "_again_until")
"""The columns that say which windows fire, told by where their end lies."""

NEVER = f"{END}L"
"""The end of a window that never ends."""

_STEP = {
    CalendarUnit.DAY: "1 DAY",
    CalendarUnit.WEEK: "7 DAY",
    CalendarUnit.MONTH: "1 MONTH",
    CalendarUnit.QUARTER: "3 MONTH",
    CalendarUnit.YEAR: "1 YEAR",
}


def pane_start(panes: Panes, time: str) -> str:
    """The start of the pane that contains `time`."""
    match panes:
        case EvenPanes():
            return f"{time} - pmod({time} - {panes.offset}L, {panes.pane}L)"
        case CalendarPanes():
            return _calendar(panes, time)[0]
        case SessionPanes():
            return time
        case _:
            return "0L"


def last_window_start(panes: Panes, time: str) -> str:
    """The start of the latest window that contains `time`; null where it has no start."""
    match panes:
        case EvenPanes():
            return f"{time} - pmod({time} - {panes.offset}L, {panes.slide}L)"
        case CalendarPanes():
            return _calendar(panes, time)[0]
        case SessionPanes():
            return time
        case _:
            return "CAST(NULL AS BIGINT)"


def last_window_end(panes: Panes, time: str) -> str:
    """The end of the latest window that contains `time`; null where it has no end."""
    match panes:
        case EvenPanes():
            return f"{last_window_start(panes, time)} + {panes.size}L"
        case CalendarPanes():
            return _calendar(panes, time)[1]
        case SessionPanes(gap=gap):
            return f"{time} + {gap}L"
        case _:
            return "CAST(NULL AS BIGINT)"


def window_starts(panes: EvenPanes, time: str) -> str:
    """The starts of all windows that contain `time`, as an array, earliest first."""
    last = f"({last_window_start(panes, time)})"
    count = f"(({panes.size}L - ({time} - {last}) - 1L) div {panes.slide}L)"
    return f"sequence({last} - {count} * {panes.slide}L, {last}, {panes.slide}L)"


def is_late(panes: Panes, time: str, behind: str, allowed_lateness: int) -> str:
    """Whether every window of `time` refuses it. The watermark is `behind` after `time`, in microseconds; may be null.

    A window refuses a record when its end and the allowed lateness are not after the watermark.
    """
    match panes:
        case EvenPanes():
            return f"coalesce({_time_left(panes, time, behind, allowed_lateness)} <= 0L, false)"
        case CalendarPanes() | SessionPanes():
            return f"coalesce({last_window_end(panes, time)} - {time} + {allowed_lateness}L <= {behind}, false)"
        case _:
            return "false"


def refusing_windows(panes: Panes, time: str, behind: str, allowed_lateness: int) -> str:
    """How many windows of `time` refuse it, for a `time` that is not late: others take it then."""
    if not isinstance(panes, EvenPanes) or panes.size <= panes.slide:
        return "0L"
    windows = f"(({panes.size}L - {_inside(panes, time)} - 1L) div {panes.slide}L + 1L)"
    left = _time_left(panes, time, behind, allowed_lateness)
    accepted = f"(({left} + {panes.slide - 1}L) div {panes.slide}L)"
    return f"greatest({windows} - {accepted}, 0L)"


def _inside(panes: EvenPanes, time: str) -> str:
    """How far `time` lies inside the latest window that contains it."""
    return f"pmod({time} - {panes.offset}L, {panes.slide}L)"


def _time_left(panes: EvenPanes, time: str, behind: str, allowed_lateness: int) -> str:
    """For how long the latest window of `time` goes on to take records: the watermark is inside it by both."""
    return f"({panes.size + allowed_lateness}L - {behind} - {_inside(panes, time)})"


def _calendar(panes: CalendarPanes, time: str) -> tuple[str, str]:
    """The start and the end of the window of `time`."""
    zone, step = text_literal(panes.zone), f"INTERVAL {_STEP[panes.unit]}"
    first = f"date_trunc('{panes.unit.value.upper()}', from_utc_timestamp(timestamp_micros({time}), {zone}))"
    before, start, end, after = (
        f"unix_micros(to_utc_timestamp({day}, {zone}))"
        for day in (f"{first} - {step}", first, f"{first} + {step}", f"{first} + {step} + {step}")
    )
    # A clock change near midnight can show another day than the one that the time belongs to.
    cases = f"CASE WHEN {start} > {time} THEN {{}} WHEN {end} <= {time} THEN {{}} ELSE {{}} END"
    return cases.format(before, end, start), cases.format(start, after, end)


def fires_on_time(end: str) -> str:
    """Whether a window that ends at `end` fires because the watermark passes its end; over the columns `BOUNDS`."""
    return f"{end} > _before AND {end} <= _after"


def fires_again(end: str) -> str:
    """Whether a window that ends at `end` fires where the batch touched it; over the columns `BOUNDS`."""
    return f"{end} > _refused_until AND {end} <= _again_until"
