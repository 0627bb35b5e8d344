"""When runs of a pipeline start: at times, and if wanted when there are records.

A period that a cron text can say exactly is shown as one.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetOrTimeSchedule, AssetWatcher, CronTriggerTimetable, DeltaTriggerTimetable

from tidemill_airflow.assets import records_asset

if TYPE_CHECKING:
    from airflow.sdk.bases.timetable import BaseTimetable

    from tidemill_airflow.dags.entities import PipelineDag

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def schedule(entity: PipelineDag) -> BaseTimetable:
    """When the DAG of a pipeline runs.

    With `look_every`, a run starts when there are records, and at the declared times, too: a run may also have to
    close windows, or be the first after somebody mended a contract, and the triggerer may be away.
    """
    times = timetable(entity.every)
    if entity.look_every is None:
        return times
    return AssetOrTimeSchedule(timetable=times, assets=[_watched(entity, entity.look_every)])


def _watched(entity: PipelineDag, look_every: timedelta) -> Asset:
    """The asset that is updated when there are records to read."""
    # Airflow's triggers take a while to load, and few pipelines need one.
    from tidemill_airflow.scheduler.records import RecordsTrigger

    trigger = RecordsTrigger(
        pipeline=entity.pipeline,
        project=entity.project,
        topics=entity.sources.topics,
        patterns=entity.sources.patterns,
        look_every=look_every.total_seconds(),
    )
    asset = records_asset(entity.pipeline)
    asset.watchers = [AssetWatcher(name=asset.name, trigger=trigger)]
    return asset


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
