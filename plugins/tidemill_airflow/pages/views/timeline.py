"""Batches over time: what the charts of a pipeline's page draw, and how their values are spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.inspect.recent_batches import BatchFacts
from tidemill_airflow.pages.access import Run
from tidemill_airflow.pages.links import task_of

BARS = 16

TITLES: Mapping[str, tuple[str, str]] = {
    "rate": ("Input rate", "records/s"),
    "processing": ("Processing time", "s"),
    "scheduling": ("Scheduling delay", "s"),
    "lag": ("Lag after the commit", "records"),
    "delay": ("Watermark delay", "s"),
}
"""Title and unit of each series."""

Series = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar of a histogram: values from `low` up to `high`, and how high it is, from 0 to 1."""

    low: float
    high: float
    count: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the values of a series are spread."""

    name: str
    title: str
    unit: str
    bars: tuple[Bar, ...]
    median: float | None
    p95: float | None
    highest: float | None


def series_of(batches: Sequence[BatchFacts], runs: Mapping[str, Run], lags: Sequence[int | None]) -> Series:
    """A value for each committed batch, oldest first; None where it is not known.

    `rate` is of records per second since the commit before. `scheduling` is the time from the moment that a run was due
    until its batch was planned. `delay` is the time from the watermark until the commit that moved it.
    """
    found = sorted(zip(batches, lags, strict=True), key=lambda each: each[0].batch_id)
    committed = [(b, lag) for b, lag in found if b.at is not None]
    times = [b.at.timestamp() for b, _ in committed if b.at is not None]
    since = [None, *(later - earlier for earlier, later in pairwise(times))]
    return {
        "time": times,
        "batch": [b.batch_id for b, _ in committed],
        "rate": [_rate(b, passed) for (b, _), passed in zip(committed, since, strict=True)],
        "processing": [b.took for b, _ in committed],
        "scheduling": [_scheduling(b, runs) for b, _ in committed],
        "lag": [lag for _, lag in committed],
        "delay": [_delay(b) for b, _ in committed],
    }


def _rate(batch: BatchFacts, passed: float | None) -> float | None:
    if batch.account is None or not passed or passed <= 0:
        return None
    return round(batch.account.read / passed, 2)


def _scheduling(batch: BatchFacts, runs: Mapping[str, Run]) -> float | None:
    task = task_of(batch.executor.identity)
    run = None if task is None else runs.get(task.run_id)
    if run is None or run.due is None:
        return None
    return max(round((batch.planned_at - run.due).total_seconds(), 3), 0.0)


def _delay(batch: BatchFacts) -> float | None:
    if batch.watermark is None or batch.at is None or batch.watermark in (BEGINNING, END):
        return None
    return max(round((micros(batch.at) - batch.watermark) / 1e6, 3), 0.0)


def spreads(series: Series) -> list[Spread]:
    """The histogram of each series that has values."""
    found = []
    for name, (title, unit) in TITLES.items():
        values = sorted(v for v in series[name] if v is not None)
        if values:
            found.append(
                Spread(
                    name=name,
                    title=title,
                    unit=unit,
                    bars=_bars(values),
                    median=_at(values, 0.5),
                    p95=_at(values, 0.95),
                    highest=values[-1],
                )
            )
    return found


def _at(values: Sequence[float], part: float) -> float:
    return values[min(int(part * len(values)), len(values) - 1)]


def _bars(values: Sequence[float]) -> tuple[Bar, ...]:
    """Bars of one width, from the least to the greatest value."""
    low, high = values[0], values[-1]
    width = (high - low) / BARS or 1
    counts = [0] * BARS
    for value in values:
        counts[min(int((value - low) / width), BARS - 1)] += 1
    most = max(counts)
    return tuple(
        Bar(low=low + n * width, high=low + (n + 1) * width, count=count, height=count / most)
        for n, count in enumerate(counts)
    )
