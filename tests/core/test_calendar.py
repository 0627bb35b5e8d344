"""Windows of the calendar: laws in every time zone, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill import Calendar
from tidemill.core.errors import DeclarationError
from tidemill.core.repair.state_retention import EARLIEST
from tidemill.core.time.calendar import CalendarPanes, CalendarUnit
from tidemill.core.time.panes import OnePane, Window
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END

ZONES = sorted(available_timezones() - {"Factory", "localtime"})
YEAR = 31_556_952_000_000
LATEST = 250_000_000_000_000_000
times = st.one_of(st.integers(-80 * YEAR, 80 * YEAR), st.integers(EARLIEST + 2 * YEAR, LATEST))
all_panes = st.builds(CalendarPanes, unit=st.sampled_from(CalendarUnit), zone=st.sampled_from(ZONES))


def at(text: str) -> int:
    return micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def bounds(window: Window) -> tuple[str, str]:
    start, end = (f"{moment(edge):%Y-%m-%d %H:%M}" for edge in (window.start, window.end))
    return start, end


@given(all_panes, times)
def test_every_time_is_in_exactly_one_window_and_windows_follow_one_another(panes: CalendarPanes, time: int) -> None:
    window = panes.last_window_of(time)
    assert window.start <= time < window.end
    assert panes.windows_of(time) == (window,)
    assert panes.neighbour(window.start, 1) == window.end
    assert panes.last_window_of(window.start) == window == panes.last_window_of(window.end - 1)
    assert 0 < window.end - window.start <= panes.longest


@given(all_panes, times)
def test_neighbours_are_found_by_their_edges(panes: CalendarPanes, time: int) -> None:
    window = panes.last_window_of(time)
    assert panes.first_ending_after(window.end - 1) == window == panes.first_starting_at(window.start)
    assert panes.last_ending_by(window.end) == window
    assert panes.windows_between(window.start, panes.neighbour(window.start, 3)) == 4
    assert panes.holds_window(window.start, window.end)
    assert not panes.holds_window(window.start + 1, window.end)
    assert not panes.holds_window(window.start, window.end - 1)


@given(st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"]), times)
def test_windows_begin_at_midnight_of_their_zone(zone: str, time: int) -> None:
    for unit in CalendarUnit:
        start = moment(CalendarPanes(unit=unit, zone=zone).last_window_of(time).start).astimezone(ZoneInfo(zone))
        assert (start.hour, start.minute, start.second, start.microsecond) == (0, 0, 0, 0)
        assert unit is not CalendarUnit.WEEK or start.weekday() == 0
        assert unit in (CalendarUnit.DAY, CalendarUnit.WEEK) or start.day == 1


@pytest.mark.parametrize(
    ("zone", "time", "expected"),
    [
        ("America/New_York", "2024-03-10 12:00", ("2024-03-10 05:00", "2024-03-11 04:00")),
        ("America/New_York", "2024-11-03 12:00", ("2024-11-03 04:00", "2024-11-04 05:00")),
        pytest.param("Africa/Cairo", "2014-05-16 00:00", ("2014-05-15 22:00", "2014-05-16 21:00"), id="no midnight"),
        pytest.param(
            "America/Havana", "2023-11-05 04:30", ("2023-11-05 04:00", "2023-11-06 05:00"), id="midnight twice"
        ),
        pytest.param("Pacific/Apia", "2011-12-30 09:59", ("2011-12-29 10:00", "2011-12-30 10:00"), id="before a day"),
        pytest.param("Pacific/Apia", "2011-12-30 10:00", ("2011-12-30 10:00", "2011-12-31 10:00"), id="no 30th"),
    ],
)
def test_row_33_days_have_23_and_25_hours_when_clocks_change(zone: str, time: str, expected: tuple[str, str]) -> None:
    assert bounds(Calendar("day", zone).panes.last_window_of(at(time))) == expected


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("week", ("2026-12-28 00:00", "2027-01-04 00:00")),
        ("month", ("2026-12-01 00:00", "2027-01-01 00:00")),
        ("quarter", ("2026-10-01 00:00", "2027-01-01 00:00")),
        ("year", ("2026-01-01 00:00", "2027-01-01 00:00")),
    ],
)
def test_row_33_weeks_start_on_monday_and_the_others_on_the_first(unit: str, expected: tuple[str, str]) -> None:
    assert bounds(Calendar(unit).panes.last_window_of(at("2026-12-31 23:59"))) == expected


def test_the_beginning_and_the_end_of_time_have_windows_too() -> None:
    for unit in CalendarUnit:
        panes = CalendarPanes(unit=unit, zone="Pacific/Kiritimati")
        assert panes.first_ending_after(BEGINNING).end > BEGINNING
        assert panes.last_ending_by(END).end <= END


@pytest.mark.parametrize(
    "zone", ["Europe/Berln", "europe/berlin", "", "../UTC", "localtime", "posix/UTC", "right/UTC", "UTC+1", 7, None]
)
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(DeclarationError, match="there is no time zone"):
        Calendar("day", zone)


@pytest.mark.parametrize("unit", ["days", "", "hour", 3, None])
def test_a_unit_that_is_none_is_refused(unit: str) -> None:
    with pytest.raises(DeclarationError, match='is one of "day", "week", "month", "quarter", "year"'):
        Calendar(unit)


def test_a_zone_that_is_another_one_on_each_machine_is_not_proposed() -> None:
    with pytest.raises(DeclarationError) as refused:
        Calendar("day", "localtime")
    assert "such as" in refused.value.fix


def test_a_zone_that_is_nearly_right_is_told() -> None:
    with pytest.raises(DeclarationError) as error:
        Calendar("day", "europe/berlin")
    assert error.value.fix == 'write "Europe/Berlin"'


@given(st.integers(BEGINNING, END - 1))
def test_the_one_window_without_bounds_holds_every_time(time: int) -> None:
    panes = OnePane()
    assert panes.windows_of(time) == (Window(BEGINNING, END),) == (panes.last_ending_by(END),)
    assert panes.pane_of(time) == 0
    assert panes.panes_between(0, 0) == 1
    assert panes.last_ending_by(time).end < BEGINNING
    assert not panes.is_late(time, watermark=END - 1, allowed_lateness=0)
    assert timedelta(microseconds=panes.longest) == timedelta(0)
