"""The figures of each pipeline and size in one form, for whoever draws or compares them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.measured import Series
from bench.report import COLD_CONTENDER, CONTENDER, FLOOR, ON_KAFKA, RIVAL_ON_KAFKA, figures

ALONE = {
    "tidemill": CONTENDER,
    "tidemill_cold": COLD_CONTENDER,
    "floor": FLOOR,
    "flink": "flink",
    "duckdb": "duckdb",
    "polars": "polars",
    "declarative": "declarative",
}
"""Whoever takes part once, by the key of its seconds."""


_ELSEWHERE = ("flink", "duckdb", "polars", COLD_CONTENDER, "declarative")
"""Whose memory is that of other processes, or beside a Java that only waits: its peak would say nothing."""


def by_pipeline(bench: Sequence[Series], more: Mapping[str, Sequence[Series]]) -> dict[str, Any]:
    """`{pipeline: {"sizes": {records: figures}}}`: of the bench's own pipeline, over Kafka, and of all in `more`.

    Figures are median seconds a batch as `..._s`, of whoever was measured, and Tidemill's peaks as `..._peak_mb`.
    """
    kafka = [one for one in bench if one.seconds.get(ON_KAFKA)]
    found = {"bench": _sizes(map(_of_everyone, bench), bench)}
    if kafka:
        found["kafka"] = _sizes(map(_on_kafka, kafka), kafka)
    return found | {name: _sizes(map(_of_everyone, series), series) for name, series in more.items()}


def _sizes(found: Iterable[dict[str, Any]], series: Sequence[Series]) -> dict[str, Any]:
    return {"sizes": {str(one.size): of for one, of in zip(series, found, strict=True)}}


def _of_everyone(series: Series) -> dict[str, Any]:
    of = figures(series)
    seconds = {key: series.median(name) for key, name in ALONE.items()}
    seconds |= {"available_now": of.available_now, "available_now_tuned": of.available_now_tuned}
    peaks = {name: dict(peak) for name, peak in series.peak_mb.items() if peak and name not in _ELSEWHERE}
    compared = {"rows_compared": series.settled, "rows_differing": dict(series.differing)}
    return {**_measured(seconds), **_peaks(series, CONTENDER), "peak_mb": peaks, **compared}


def _on_kafka(series: Series) -> dict[str, Any]:
    names = {"tidemill": ON_KAFKA, "available_now": RIVAL_ON_KAFKA}
    differing = {key: series.differing[name] for key, name in names.items() if name in series.differing}
    found = {**_measured({key: series.median(name) for key, name in names.items()}), **_peaks(series, ON_KAFKA)}
    return {**found, "rows_compared": series.settled, "rows_differing": differing}


def _measured(seconds: Mapping[str, float | None]) -> dict[str, float]:
    return {f"{key}_s": round(median, 3) for key, median in seconds.items() if median is not None}


def _peaks(series: Series, name: str) -> dict[str, int]:
    return {f"{where}_peak_mb": peak for where, peak in series.peak_mb.get(name, {}).items()}
