"""The arithmetic of windows as Spark SQL: what `Panes` and `Firing` say of one moment, said of a column.

`time` is an SQL expression for microseconds since 1970. `pmod` floors below zero, as Python's `%` does.
"""

from __future__ import annotations

from tidemill.core.time.windows import Panes

BOUNDS = ("_before", "_after", "_refused_until", "_again_until")
"""The columns that say which windows fire, told by where their end lies."""


def pane_start(panes: Panes, time: str) -> str:
    """The start of the pane that contains `time`."""
    return f"{time} - pmod({time} - {panes.offset}L, {panes.pane}L)"


def last_window_start(panes: Panes, time: str) -> str:
    """The start of the latest window that contains `time`."""
    return f"{time} - pmod({time} - {panes.offset}L, {panes.slide}L)"


def window_starts(panes: Panes, time: str) -> str:
    """The starts of all windows that contain `time`, as an array, earliest first."""
    last = f"({last_window_start(panes, time)})"
    count = f"(({panes.size}L - ({time} - {last}) - 1L) div {panes.slide}L)"
    return f"sequence({last} - {count} * {panes.slide}L, {last}, {panes.slide}L)"


def is_late(panes: Panes, time: str, behind: str, allowed_lateness: int) -> str:
    """Whether every window of `time` refuses it. The watermark is `behind` after `time`, in microseconds; may be null.

    A window refuses a record when its end and the allowed lateness are not after the watermark.
    """
    return f"coalesce({_time_left(panes, time, behind, allowed_lateness)} <= 0L, false)"


def refusing_windows(panes: Panes, time: str, behind: str, allowed_lateness: int) -> str:
    """How many windows of `time` refuse it, for a `time` that is not late: others take it then."""
    windows = f"(({panes.size}L - {_inside(panes, time)} - 1L) div {panes.slide}L + 1L)"
    left = _time_left(panes, time, behind, allowed_lateness)
    accepted = f"(({left} + {panes.slide - 1}L) div {panes.slide}L)"
    return f"greatest({windows} - {accepted}, 0L)"


def _inside(panes: Panes, time: str) -> str:
    """How far `time` lies inside the latest window that contains it."""
    return f"pmod({time} - {panes.offset}L, {panes.slide}L)"


def _time_left(panes: Panes, time: str, behind: str, allowed_lateness: int) -> str:
    """For how long the latest window of `time` goes on to take records: the watermark is inside it by both."""
    return f"({panes.size + allowed_lateness}L - {behind} - {_inside(panes, time)})"


def fires_on_time(end: str) -> str:
    """Whether a window that ends at `end` fires because the watermark passes its end; over the columns `BOUNDS`."""
    return f"{end} > _before AND {end} <= _after"


def fires_again(end: str) -> str:
    """Whether a window that ends at `end` fires where the batch touched it; over the columns `BOUNDS`."""
    return f"{end} > _refused_until AND {end} <= _again_until"
