"""Draws the pictures of the gallery from published tables: `python draw.py PICTURE LAKE FOLDER`.

PICTURE is `logins`, `social-volume` or `earthquakes`. LAKE is the folder that `[lake] path` names. The picture is
written to FOLDER as PICTURE.svg. The same rows give the same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

Rows = Iterable[Mapping[str, Any]]

STYLE = """<style>
svg { font-family: system-ui, sans-serif; font-size: 12px; fill: #24292f; color: #24292f; }
.axis { fill: none; stroke: currentColor; stroke-width: 1; }
.grid { fill: none; stroke: currentColor; stroke-width: 0.5; opacity: 0.25; }
.all { fill: none; stroke: #0969da; stroke-width: 1.5; }
.some { fill: none; stroke: #bc4c00; stroke-width: 3; }
.key { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  svg { fill: #e6edf3; color: #e6edf3; }
  .all { stroke: #58a6ff; }
  .some { stroke: #f0883e; }
}
</style>"""
WIDTH, LEFT, RIGHT = 740, 50, 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A part of a picture with axes of its own: time to the right, a number upward.

    `times` and `numbers` are the bounds of the axes, included. `top` and `bottom` are where the panel lies, in pixels.
    """

    times: tuple[datetime, datetime]
    numbers: tuple[float, float]
    top: int
    bottom: int

    def x(self, time: datetime) -> float:
        """Where a time is."""
        first, last = self.times
        return LEFT + (time - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, number: float) -> float:
        """Where a number is."""
        least, most = self.numbers
        return self.bottom - (number - least) / (most - least) * (self.bottom - self.top)

    def bars(self, kind: str, bars: Iterable[tuple[datetime, float, float]]) -> str:
        """A path of upright bars: time, lower and upper end."""
        steps = (f"M{self.x(time):.1f} {self.y(low):.1f}V{self.y(high):.1f}" for time, low, high in bars)
        return f'<path class="{kind}" d="{"".join(steps)}"/>'

    def axes(self, unit: str, numbers: Sequence[float], times: Sequence[datetime], form: str) -> Iterator[str]:
        """The axes with their units; the times are written in this form, below the panel."""
        yield f'<path class="axis" d="M{LEFT} {self.top}V{self.bottom}H{WIDTH - RIGHT}"/>'
        yield text(LEFT, self.top - 10, unit, "start")
        for number in numbers:
            yield f'<path class="grid" d="M{LEFT} {self.y(number):.1f}H{WIDTH - RIGHT}"/>'
            yield text(LEFT - 6, self.y(number) + 4, f"{number:g}", "end")
        for time in times:
            yield f'<path class="axis" d="M{self.x(time):.1f} {self.bottom}v4"/>'
            yield text(self.x(time), self.bottom + 18, f"{time:{form}}", "middle")


def text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    """A text at a point."""
    of_kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{of_kind}>{words}</text>'


def picture(height: int, label: str, parts: Iterable[str]) -> str:
    """A whole file of SVG."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{label}">'
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


def logins(waves: Rows, sessions: Rows) -> str:
    """Waves of failed logins over a year, and over them the sessions of single sources."""
    waves, sessions = list(waves), list(sessions)
    year = min(row["window_start"] for row in waves).year
    months = [datetime(year, month, 1, tzinfo=UTC) for month in range(1, 13)]
    bounds = (months[0], datetime(year + 1, 1, 1, tzinfo=UTC))
    panel = Panel(times=bounds, numbers=(0, 250), top=50, bottom=250)
    parts = [
        *panel.axes("failed attempts", range(0, 251, 50), months, "%b"),
        *(panel.bars(kind, _upright(rows)) for kind, rows in (("all", waves), ("some", sessions))),
        *_legend("all", 0, f"waves over all sources: {len(waves)}"),
        *_legend("some", 230, f"sessions of one source: {len(sessions)}"),
        text(WIDTH - RIGHT, 290, f"{year}, UTC", "end"),
    ]
    return picture(300, f"Failed logins of attacks in {year}: waves over all sources, sessions of one source", parts)


def _upright(rows: Rows) -> Iterator[tuple[datetime, float, float]]:
    for row in sorted(rows, key=lambda row: row["window_start"]):
        yield row["window_start"], 0, row["failures"]


def social_volume(scores: Rows) -> str:
    """The least and the greatest score of each company in every six hours."""
    found: dict[str, dict[datetime, list[float]]] = {}
    for row in scores:
        at = row["newest_at"]
        six_hours = at.replace(hour=at.hour // 6 * 6, minute=0, second=0, microsecond=0)
        found.setdefault(row["company"], {}).setdefault(six_hours, []).append(row["z_score"])
    times = sorted(time for bars in found.values() for time in bars)
    first, last = times[0].replace(hour=0), times[-1].replace(hour=0) + timedelta(days=1)
    weeks = [first + timedelta(days=7 * number) for number in range((last - first).days // 7 + 1)]
    parts = []
    for number, company in enumerate(sorted(found)):
        panel = Panel(times=(first, last), numbers=(-4, 18), top=50 + 200 * number, bottom=190 + 200 * number)
        bars = [(time, min(values), max(values)) for time, values in sorted(found[company].items())]
        parts += panel.axes("z-score, standard deviations", range(-3, 19, 3), weeks, "%d %b")
        parts += [panel.bars("all", bars), text(WIDTH - RIGHT, panel.top - 10, company, "end", "key")]
    height = 40 + 200 * len(found)
    parts.append(text(WIDTH - RIGHT, height - 10, f"{first.year}, UTC; each bar is six hours", "end"))
    return picture(height, f"Volume of {' and '.join(sorted(found))} against the last day", parts)


def earthquakes(rows: Rows) -> str:
    """The two regions with the most earthquakes, in their fullest week: what of each hour was known on time, and later.

    Rows are firings. Of each region and hour, the last one that is inserted holds; of those that are not late, it is
    what was known on time.
    """
    inserted = sorted((row for row in rows if row["operation"] == "insert"), key=lambda row: row["nth"])
    known = _numbers(inserted)
    on_time = _numbers(row for row in inserted if row["timing"] != "LATE")
    regions = sorted(known, key=lambda region: (-sum(known[region].values()), region))[:2]
    first = _fullest_week([known[region] for region in regions])
    days = [first + timedelta(days=number) for number in range(8)]
    parts = [*_legend("all", 0, "known on time"), *_legend("some", 230, "added by later reports")]
    for number, region in enumerate(regions):
        panel = Panel(times=(days[0], days[-1]), numbers=(0, 25), top=60 + 200 * number, bottom=200 + 200 * number)
        hours = [(time, on_time.get(region, {}).get(time, 0), n) for time, n in sorted(known[region].items())]
        hours = [(time + timedelta(minutes=30), early, n) for time, early, n in hours if days[0] <= time < days[-1]]
        parts += panel.axes("earthquakes in an hour", range(0, 26, 5), days, "%d %b")
        parts += [
            panel.bars("all", ((time, 0, early) for time, early, _ in hours if early)),
            panel.bars("some", ((time, early, n) for time, early, n in hours if n > early)),
            text(WIDTH - RIGHT, panel.top - 10, region, "end", "key"),
        ]
    parts.append(text(WIDTH - RIGHT, 440, f"{first.year}, UTC", "end"))
    return picture(450, f"Earthquakes of {' and '.join(regions)} by hour: known on time, added by later reports", parts)


def _numbers(rows: Rows) -> dict[str, dict[datetime, int]]:
    """How many quakes the last row of each region and hour says."""
    found: dict[str, dict[datetime, int]] = {}
    for row in rows:
        found.setdefault(row["region"], {})[row["window_start"]] = row["quakes"]
    return found


def _fullest_week(regions: Sequence[Mapping[datetime, int]]) -> datetime:
    """The first of the seven days with the most of all of them."""
    days: dict[datetime, int] = {}
    for time, number in (pair for numbers in regions for pair in numbers.items()):
        day = time.replace(hour=0)
        days[day] = days.get(day, 0) + number
    return max(sorted(days), key=lambda day: sum(days.get(day + timedelta(days=n), 0) for n in range(7)))


def _legend(kind: str, x: int, words: str) -> Iterator[str]:
    yield f'<path class="{kind}" d="M{LEFT + x} 14h20"/>'
    yield text(LEFT + x + 26, 18, words, "start")


PICTURES: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
    "logins": (logins, ("attack_waves", "attacker_sessions")),
    "social-volume": (social_volume, ("volume_scores",)),
    "earthquakes": (earthquakes, ("quake_hours",)),
}
"""For each picture, what draws it, and the tables whose rows it takes."""


def main(name: str, lake: str, folder: str) -> None:
    """Draw one picture."""
    draw, tables = PICTURES[name]
    rows = [DeltaTable(f"{lake}/published/{table}").to_pyarrow_table().to_pylist() for table in tables]
    path = Path(folder) / f"{name}.svg"
    path.write_text(draw(*rows), encoding="utf-8")
    print(f"{path}: {sum(map(len, rows)):,} rows")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in PICTURES:
        sys.exit(f"expected: draw.py PICTURE LAKE FOLDER, where PICTURE is one of {', '.join(PICTURES)}")
    main(*sys.argv[1:])
