"""When runs start, and the text that Airflow's list shows for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("every", "cron"),
    [
        (timedelta(minutes=1), "* * * * *"),
        (timedelta(minutes=15), "*/15 * * * *"),
        (timedelta(hours=1), "0 * * * *"),
        (timedelta(hours=6), "0 */6 * * *"),
        (timedelta(days=1), "0 0 * * *"),
    ],
)
def test_period_that_cron_can_say_is_shown_as_cron_and_keeps_its_period(every: timedelta, cron: str) -> None:
    from croniter import croniter

    from tidemill_airflow.dags.schedules import cron_of

    assert cron_of(every) == cron
    starts = croniter(cron, datetime(2026, 1, 31, 22, 17, tzinfo=UTC))
    times = [starts.get_next(datetime) for _ in range(200)]
    assert {later - earlier for earlier, later in pairwise(times)} == {every}


@pytest.mark.parametrize(
    "every",
    [
        timedelta(seconds=3),
        timedelta(seconds=90),
        timedelta(minutes=7),
        timedelta(minutes=45),
        timedelta(hours=5),
        timedelta(days=2),
        timedelta(minutes=1, microseconds=1),
    ],
)
def test_period_that_cron_cannot_say_counts_from_the_run_before(every: timedelta) -> None:
    from airflow.sdk import DeltaTriggerTimetable

    from tidemill_airflow.dags.schedules import timetable

    assert timetable(every) == DeltaTriggerTimetable(every, interval=every)


def test_run_covers_the_interval_that_ends_at_its_start_and_the_first_one_starts_at_once() -> None:
    from airflow.serialization.decoders import decode_timetable
    from airflow.serialization.encoders import encode_timetable
    from airflow.timetables.base import TimeRestriction

    from tidemill_airflow.dags.schedules import timetable

    hourly: Any = decode_timetable(encode_timetable(timetable(timedelta(hours=1))))
    restriction = TimeRestriction(earliest=None, latest=None, catchup=False)
    first = hourly.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    start, end = first.data_interval.start, first.data_interval.end
    assert end - start == timedelta(hours=1)
    assert (end.minute, end.second) == (0, 0)
    assert end <= datetime.now(UTC)
