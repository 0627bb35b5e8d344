"""The figures, what they were aimed at, and how both are shown and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.aims import FIRST, PAGE_VIEWS, Aim, growth, of_others, of_sizes
from bench.baselines import StateStore
from bench.figures import Figures
from bench.measured import EARLY, LATE, RECORDS, Series, Steady

FORMAT_VERSION = 1
CONTENDER, FLOOR, RIVAL, TUNED = "tidemill", "floor", "available_now", "_tuned"
COLD, COLD_CONTENDER = "cold", "tidemill cold"
More = Mapping[str, Sequence[Series]]
"""What was measured beside the bench's own pipeline, by the name of the pipeline, or `COLD` for commands."""
ON_KAFKA, RIVAL_ON_KAFKA = "tidemill on kafka", "available_now on kafka"


def figures(series: Series) -> Figures:
    """The medians that count."""
    rival, tuned_rival = _faster(series, ""), _faster(series, TUNED)
    return Figures(
        size=series.size,
        tidemill=series.median(CONTENDER),
        floor=series.median(FLOOR),
        available_now=series.median(rival),
        rival=rival,
        available_now_tuned=series.median(tuned_rival),
        tuned_rival=tuned_rival,
        flink=series.median("flink"),
        duckdb=series.median("duckdb"),
        kafka=series.median(ON_KAFKA),
    )


def _faster(series: Series, suffix: str) -> str:
    """The state store with the lower median; empty when none took part."""
    names = [f"{RIVAL}_{store.name.lower()}{suffix}" for store in StateStore]
    return min((n for n in names if series.seconds.get(n)), key=lambda n: series.median(n) or 0.0, default="")


def as_json(series: Sequence[Series], steady: Steady | None, more: More, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, rounded to milliseconds, with the aims; `about` goes in as it is."""
    return {
        "format_version": FORMAT_VERSION,
        **about,
        "sizes": {str(one.size): _size_json(one, figures(one)) for one in series},
        "steady": _steady_json(steady),
        "aims": [
            {"what": aim.what, "found": _rounded(aim.found), "bound": aim.bound, "met": aim.met}
            for aim in aims(series, steady, more)
        ],
    }


def aims(series: Sequence[Series], steady: Steady | None, more: More) -> list[Aim]:
    """All aims of a run, met or not."""
    page_views = _median(more.get("page_views", ()), PAGE_VIEWS, CONTENDER)
    first = next((s[0] for one in more.get(COLD, ()) if one.size == FIRST and (s := one.seconds[COLD_CONTENDER])), None)
    return [*of_sizes([figures(one) for one in series], steady), *of_others(page_views, first)]


def _median(series: Sequence[Series], size: int, name: str) -> float | None:
    return next((one.median(name) for one in series if one.size == size), None)


def _size_json(series: Series, of: Figures) -> dict[str, Any]:
    return {
        "tidemill_s": _rounded(of.tidemill),
        "available_now_s": _rounded(of.available_now),
        "floor_s": _rounded(of.floor),
        "records_a_second": rates(series),
        "available_now_tuned_s": _rounded(of.available_now_tuned),
        "vs_available_now": _rounded(of.vs_available_now),
        "vs_available_now_tuned": _rounded(of.vs_tuned),
        "vs_floor": _rounded(of.vs_floor),
        "available_now": of.rival,
        "rows_compared": series.settled,
        "rows_differing": dict(series.differing),
        "rounds_s": {name: [_rounded(s) for s in seconds] for name, seconds in series.seconds.items()},
        "rounds_cpu_s": {name: [_rounded(s) for s in seconds] for name, seconds in series.cpu_seconds.items()},
    }


def rates(series: Series) -> dict[str, int]:
    """Records planned, read and committed in a second, by the log they lie in."""
    logs = {"file log": series.median(CONTENDER), "kafka": series.median(ON_KAFKA)}
    return {log: round(series.size / seconds) for log, seconds in logs.items() if seconds}


def _steady_json(steady: Steady | None) -> dict[str, Any] | None:
    if steady is None:
        return None
    return {
        "batch_records": RECORDS,
        "batches": len(steady.seconds),
        f"batch_{EARLY}_s": _rounded(steady.around(EARLY)),
        f"batch_{LATE}_s": _rounded(steady.around(LATE)),
        "ratio": _rounded(growth(steady)),
        f"floor_at_{EARLY}_s": _rounded(steady.bare_around(EARLY)),
        f"floor_at_{LATE}_s": _rounded(steady.bare_around(LATE)),
        "hundreds_s": [_rounded(s) for s in steady.hundreds],
    }


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Put the figures into a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=2) + "\n")
    partial.replace(path)


def show(console: Console, series: Sequence[Series], steady: Steady | None, more: More) -> None:
    """Print medians, spread, ratios and aims."""
    for name, each in {"": series, **more}.items():
        if each and name != COLD:
            console.print(_medians(f"{name}: seconds a batch" if name else "Seconds a batch", each))
    for one in series:
        told = ", ".join(f"{rate:,} from {log}" for log, rate in rates(one).items())
        console.print(f"batches of {one.size:,}: records a second, planned, read and committed: {told or '-'}")
        console.print(f"batches of {one.size:,}: MB of driver + workers at most: {_memory(one)}")
    if steady is not None:
        hundreds = " ".join(f"{s:.2f}" for s in steady.hundreds)
        console.print(f"\n{len(steady.seconds):,} batches of {RECORDS} records; median of each hundred, s: {hundreds}")
    console.print(_aims(aims(series, steady, more)))


def _medians(title: str, series: Sequence[Series]) -> Table:
    table = Table(title=f"{title}: median (fastest-slowest)", box=SIMPLE_HEAD)
    for heading in (
        "records",
        "Tidemill",
        "AvailableNow",
        "tuned",
        "Flink",
        "bare",
        "DuckDB",
        "x A.N.",
        "x tuned",
        "x Flink",
        "equal",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in series:
        of = figures(one)
        table.add_row(
            f"{one.size:,}",
            _spread(one, CONTENDER),
            _spread(one, of.rival),
            *map(_seconds, (of.available_now_tuned, of.flink, of.floor, of.duckdb)),
            *map(_times, (of.vs_available_now, of.vs_tuned, of.vs_flink)),
            _equality(one),
        )
    return table


def _aims(aims: Sequence[Aim]) -> Table:
    table = Table(title="Aims", box=SIMPLE_HEAD)
    for heading in ("", "found", "aim", ""):
        table.add_column(heading)
    words = {True: "[green]met", False: "[red]not met", None: "[dim]not measured"}
    for aim in aims:
        table.add_row(aim.what, _figure(aim.found), aim.bound, words[aim.met])
    return table


def _figure(found: float | None) -> str:
    """With three digits at least: a bound is missed by few hundredths, too."""
    if found is None:
        return "-"
    return f"{found:.3g}" if found < 1_000 else f"{found:,.0f}"


def _spread(series: Series, name: str) -> str:
    seconds = series.seconds.get(name)
    return f"{series.median(name):.2f} ({min(seconds):.2f}-{max(seconds):.2f})" if seconds else "-"


def _seconds(median: float | None) -> str:
    return "-" if median is None else f"{median:.2f}"


def _memory(series: Series) -> str:
    """The most that the driver and the workers of a batch of Tidemill had in memory."""
    peak = series.peak_mb.get(CONTENDER, {})
    return f"{peak['driver']:,} + {peak['workers']:,}" if peak else "-"


def _equality(series: Series) -> str:
    wrong = sum(series.differing.values())
    return f"[red]{wrong:,} differ" if wrong else f"{series.settled:,}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
