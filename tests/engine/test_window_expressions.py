"""The arithmetic of windows as SQL says what the functions say."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from tidemill.core.time.calendar import CalendarPanes, CalendarUnit
from tidemill.core.time.panes import EvenPanes, Window
from tidemill.core.time.times import micros
from tidemill.core.time.window_expressions import (
    is_late,
    last_window_end,
    last_window_start,
    pane_start,
    refusing_windows,
    window_starts,
)

pytestmark = pytest.mark.spark

DRAWN = random.Random(17)
"""The same draws in every run."""


def some_panes() -> EvenPanes:
    """Windows whose slide divides their size, or not, that start anywhere."""
    slide = DRAWN.randint(1, 12)
    return EvenPanes(size=slide + DRAWN.randint(0, 30), slide=slide, offset=DRAWN.randint(0, slide - 1))


PANES = [EvenPanes(size=10, slide=10), *(some_panes() for _ in range(24))]
TIMES = range(-40, 41)


def refusing(panes: EvenPanes, time: int, watermark: int, allowed: int) -> int:
    return sum(window.end + allowed <= watermark for window in panes.windows_of(time))


def test_text_and_function_place_every_moment_alike(spark: Any) -> None:
    columns = [
        f"({each(panes, 'id')}) AS {each.__name__}_{number}"
        for number, panes in enumerate(PANES)
        for each in (pane_start, last_window_start, window_starts)
    ]
    for row in spark.range(TIMES.start, TIMES.stop).selectExpr("id", *columns).collect():
        for number, panes in enumerate(PANES):
            time = row["id"]
            assert row[f"pane_start_{number}"] == panes.pane_of(time)
            assert row[f"last_window_start_{number}"] == panes.last_window_of(time).start
            assert row[f"window_starts_{number}"] == [window.start for window in panes.windows_of(time)]


def test_text_and_function_judge_lateness_alike(spark: Any) -> None:
    lateness = [DRAWN.choice((0, 1, 5, 17)) for _ in PANES]
    watermark = 7
    told = [(panes, "id", f"({watermark}L - id)", allowed) for panes, allowed in zip(PANES, lateness, strict=True)]
    columns = [f"{each(*t)} AS {each.__name__}_{n}" for n, t in enumerate(told) for each in (is_late, refusing_windows)]
    for row in spark.range(TIMES.start, TIMES.stop).selectExpr("id", *columns).collect():
        for number, (panes, _, _, allowed) in enumerate(told):
            time = row["id"]
            late = panes.is_late(time, watermark=watermark, allowed_lateness=allowed)
            assert row[f"is_late_{number}"] == late
            assert late or row[f"refusing_windows_{number}"] == refusing(panes, time, watermark, allowed)


ZONES = ("America/New_York", "Africa/Cairo", "America/Havana", "Pacific/Apia", "America/Toronto", "Asia/Kathmandu")
"""Clocks that skip midnight or repeat it, a day that never was, a change over midnight, and a quarter of an hour."""

CHANGES = ("2024-03-10 07:00", "2014-05-15 22:00", "2023-11-05 05:00", "2011-12-30 10:00", "1919-03-31 04:30")


def test_text_and_function_place_every_moment_in_the_same_window_of_the_calendar(spark: Any) -> None:
    every = [CalendarPanes(unit=unit, zone=zone) for unit in CalendarUnit for zone in ZONES]
    columns = [f"({pane_start(p, 'time')}) AS start_{n}" for n, p in enumerate(every)]
    columns += [f"({last_window_end(p, 'time')}) AS end_{n}" for n, p in enumerate(every)]
    minutes = (-1500, -91, -61, -60, -31, -30, -1, 0, 1, 29, 30, 31, 59, 60, 61, 1500)
    changes = [micros(datetime.fromisoformat(text).replace(tzinfo=UTC)) for text in CHANGES]
    times = [(change + minute * 60_000_000 - less,) for change in changes for minute in minutes for less in (0, 1)]
    for row in spark.createDataFrame(times, "time BIGINT").selectExpr("time", *columns).collect():
        for number, panes in enumerate(every):
            found = Window(row[f"start_{number}"], row[f"end_{number}"])
            assert found == panes.last_window_of(row["time"]), (panes, row["time"])


def test_nothing_is_late_before_there_is_a_watermark(spark: Any) -> None:
    [row] = spark.range(1).selectExpr(f"{is_late(PANES[0], 'id', 'CAST(NULL AS BIGINT)', 0)} AS late").collect()
    assert row["late"] is False
