"""The figures, what they were aimed at, and how both are shown and kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.baselines import StateStore
from bench.measured import EARLY, LATE, RECORDS, Series, Steady

FORMAT_VERSION = 1
CONTENDER, FLOOR, RIVAL, TUNED = "tidemill", "floor", "available_now", "_tuned"
ON_KAFKA = "tidemill on kafka"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A figure and its bound. `met` is None where the figure was not measured."""

    what: str
    found: float | None
    bound: str
    met: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The medians of a series; of Structured Streaming, of the state store (`rival`, `tuned_rival`) that was faster."""

    size: int
    tidemill: float | None
    floor: float | None
    available_now: float | None
    rival: str
    available_now_tuned: float | None
    tuned_rival: str

    @property
    def vs_available_now(self) -> float | None:
        """How many times faster than Structured Streaming."""
        return _ratio(self.available_now, self.tidemill)

    @property
    def vs_tuned(self) -> float | None:
        """How many times faster than Structured Streaming with every setting that was found to help it."""
        return _ratio(self.available_now_tuned, self.tidemill)

    @property
    def vs_floor(self) -> float | None:
        """How many times faster than the bare job; below 1, slower."""
        return _ratio(self.floor, self.tidemill)


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
    )


def _faster(series: Series, suffix: str) -> str:
    """The state store with the lower median; empty when none took part."""
    names = [f"{RIVAL}_{store.name.lower()}{suffix}" for store in StateStore]
    return min((n for n in names if series.seconds.get(n)), key=lambda n: series.median(n) or 0.0, default="")


def aims(measured: Sequence[Figures], steady: Steady | None) -> list[Aim]:
    """Everything that the bench is to show, met or not."""
    found = [aim for each in measured for aim in _aims_of_size(each)]
    early, late = (steady.around(EARLY), steady.around(LATE)) if steady else (None, None)
    growth = _ratio(late, early)
    met = None if growth is None else growth <= 1.10
    return [*found, Aim(what=f"batch {LATE:,} against batch {EARLY}", found=growth, bound="at most 1.10 x", met=met)]


def _aims_of_size(each: Figures) -> list[Aim]:
    ours, floor, ratio = each.tidemill, each.floor, each.vs_available_now
    size = f"{each.size:,} records"
    found = [
        Aim(
            what=f"{size}: times faster than AvailableNow",
            found=ratio,
            bound="at least 4 x",
            met=None if ratio is None else ratio >= 4,
        )
    ]
    if each.size == 1_000:
        met = None if ours is None else ours < 0.6
        found.append(Aim(what=f"{size}: seconds", found=ours, bound="below 0.6 s", met=met))
    if floor is not None and each.size == 100_000:
        met = None if ours is None else ours <= floor + 0.4
        bound = f"at most floor + 0.4 = {floor + 0.4:.2f} s"
        found.append(Aim(what=f"{size}: seconds", found=ours, bound=bound, met=met))
    if floor is not None and each.size == 1_000_000:
        met = None if ours is None else ours < floor
        found.append(Aim(what=f"{size}: seconds", found=ours, bound=f"below floor = {floor:.2f} s", met=met))
    return found


def as_json(series: Sequence[Series], steady: Steady | None, about: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, rounded to milliseconds, with the aims; `about` goes in as it is."""
    measured = [figures(one) for one in series]
    return {
        "format_version": FORMAT_VERSION,
        **about,
        "sizes": {str(one.size): _size_json(one, of) for one, of in zip(series, measured, strict=True)},
        "steady": _steady_json(steady),
        "aims": [
            {"what": aim.what, "found": _rounded(aim.found), "bound": aim.bound, "met": aim.met}
            for aim in aims(measured, steady)
        ],
    }


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
    early, late = steady.around(EARLY), steady.around(LATE)
    return {
        "batch_records": RECORDS,
        "batches": len(steady.seconds),
        f"batch_{EARLY}_s": _rounded(early),
        f"batch_{LATE}_s": _rounded(late),
        "ratio": _rounded(_ratio(late, early)),
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


def show(console: Console, series: Sequence[Series], steady: Steady | None) -> None:
    """Print medians, spread, ratios and aims."""
    if series:
        console.print(_medians(series))
    for one in series:
        told = ", ".join(f"{rate:,} from {log}" for log, rate in rates(one).items())
        console.print(f"batches of {one.size:,}: records a second, planned, read and committed: {told or '-'}")
    if steady is not None:
        hundreds = " ".join(f"{s:.2f}" for s in steady.hundreds)
        console.print(f"\n{len(steady.seconds):,} batches of {RECORDS} records; median of each hundred, s: {hundreds}")
    console.print(_aims([figures(one) for one in series], steady))


def _medians(series: Sequence[Series]) -> Table:
    table = Table(title="Seconds a batch: median (fastest-slowest)", box=SIMPLE_HEAD)
    for heading in (
        "records",
        "Tidemill",
        "AvailableNow",
        "tuned",
        "bare job",
        "x Av.Now",
        "x tuned",
        "x bare",
        "rows equal",
    ):
        table.add_column(heading, justify="right")
    for one in series:
        of = figures(one)
        table.add_row(
            f"{one.size:,}",
            _spread(one, CONTENDER),
            _spread(one, of.rival),
            _spread(one, of.tuned_rival),
            _spread(one, FLOOR),
            _times(of.vs_available_now),
            _times(of.vs_tuned),
            _times(of.vs_floor),
            _equality(one),
        )
    return table


def _aims(measured: Sequence[Figures], steady: Steady | None) -> Table:
    table = Table(title="Aims", box=SIMPLE_HEAD)
    for heading in ("", "found", "aim", ""):
        table.add_column(heading)
    words = {True: "[green]met", False: "[red]not met", None: "[dim]not measured"}
    for aim in aims(measured, steady):
        table.add_row(aim.what, "-" if aim.found is None else f"{aim.found:.2f}", aim.bound, words[aim.met])
    return table


def _spread(series: Series, name: str) -> str:
    seconds = series.seconds.get(name)
    return f"{series.median(name):.2f} ({min(seconds):.2f}-{max(seconds):.2f})" if seconds else "-"


def _equality(series: Series) -> str:
    wrong = sum(series.differing.values())
    return f"[red]{wrong:,} differ" if wrong else f"{series.settled:,}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
