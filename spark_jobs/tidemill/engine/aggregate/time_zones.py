"""Time zones of calendar windows: Spark and Python must have the same rules, from databases of their own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.errors import DeclarationError
from tidemill.core.time.calendar import CalendarPanes
from tidemill.core.time.times import micros, show_moment
from tidemill.core.time.window_expressions import last_window_end

_YEARS = (-10, 3)
"""The years around the present in which the rules must agree."""


def check_zone(session: SparkSession, sink: WindowedSink, where: str) -> None:
    """Refuse calendar windows of a time zone for which Spark and Python have other rules.

    It compares the end of every window of ten past and three coming years.

    Raises:
        DeclarationError: Spark does not know the zone, or a window ends at another time than in Python.
    """
    panes = sink.window.panes
    if not isinstance(panes, CalendarPanes):
        return
    now = datetime.now(UTC)
    first, last = (panes.number_of(micros(now + timedelta(days=365 * years))) for years in _YEARS)
    windows = [panes.window(number) for number in range(first, last + 1)]
    starts = ", ".join(f"{window.start}L" for window in windows)
    try:
        text = f"SELECT transform(array({starts}), t -> {last_window_end(panes, 't')}) AS ends"
        [ends] = session.sql(text).toArrow()["ends"].to_pylist()
    except PySparkException as error:
        if "INVALID_TIMEZONE" not in str(error):
            raise
        raise DeclarationError(
            f"{where}: Spark's Java does not know the time zone {panes.zone}",
            fix="use a newer Java, whose time zones are newer, or the name of another zone with the same clock",
        ) from None
    for window, end in zip(windows, ends, strict=True):
        if window.end != end:
            raise DeclarationError(
                f"{where}: the window of {panes.zone} that starts at {show_moment(window.start)} ends at "
                f"{show_moment(window.end)} by the time zones of Python, and at {show_moment(end)} by those of Java",
                fix="bring both up to date: the package tzdata of the system or of Python, and Java",
            )
