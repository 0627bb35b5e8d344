"""When runs of a pipeline start. A period that a cron text can say exactly is shown as one."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import CronTriggerTimetable, DeltaTriggerTimetable

if TYPE_CHECKING:
    from airflow.sdk.bases.timetable import BaseTimetable

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def timetable(every: timedelta) -> BaseTimetable:
    """The timetable of runs that start every so often, each for the interval that has just ended.

    The first run starts at once. A period that a cron text cannot say counts from the run before.
    """
    cron = cron_of(every)
    if cron is None:
        return DeltaTriggerTimetable(every, interval=every)
    return CronTriggerTimetable(cron, timezone="UTC", interval=every, run_immediately=True)


def cron_of(every: timedelta) -> str | None:
    """A cron text with exactly this period, aligned to hours and days of UTC; None if there is none."""
    if every == _DAY:
        return "0 0 * * *"
    if every >= _MINUTE and not every % _MINUTE and not _HOUR % every:
        return "0 * * * *" if every == _HOUR else f"{_step(every // _MINUTE)} * * * *"
    if every > _HOUR and not every % _HOUR and not _DAY % every:
        return f"0 {_step(every // _HOUR)} * * *"
    return None


def _step(number: int) -> str:
    return "*" if number == 1 else f"*/{number}"
