"""Draws seconds over records a batch, both in powers of ten: `python benchmarks/bench/picture.py BENCH_JSON`.

Each pipeline is a picture beside the figures, each contender a line in it. The same figures give the same bytes.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 740, 420, 60, 190, 20, 50
LINES = {
    "available_now_s": ("AvailableNow", "#bc4c00", ""),
    "available_now_tuned_s": ("AvailableNow, tuned", "#bc4c00", "6 4"),
    "flink_s": ("Flink SQL, the job alone", "#8250df", ""),
    "floor_s": ("bare Spark job", "#6e7781", "6 4"),
    "declarative_s": ("spark-pipelines run", "#bc4c00", "2 3"),
    "tidemill_cold_s": ("tidemill run", "#0969da", "6 4"),
    "tidemill_s": ("Tidemill", "#0969da", ""),
    "duckdb_s": ("DuckDB query", "#1a7f37", "6 4"),
    "polars_s": ("Polars query", "#1a7f37", "2 3"),
}
"""The name, colour and dashes of each contender, in the order of their figures."""

Points = Sequence[tuple[int, float]]


def beside(figures: Path, pipelines: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Draw each pipeline of a file of figures: `bench.json` gets `bench.svg` and, of others, `bench_<pipeline>.svg`.

    Nothing is drawn of a pipeline without figures, nor of fewer than two sizes. Answers which files were written.
    """
    drawings = {}
    for name, pipeline in pipelines.items():
        if sum(not LINES.keys().isdisjoint(of) for of in pipeline["sizes"].values()) > 1:
            stem = figures.stem if name == "bench" else f"{figures.stem}_{name}"
            drawings[figures.with_name(f"{stem}.svg")] = drawn(pipeline["sizes"])
    for path, svg in drawings.items():
        path.write_text(svg)
    return list(drawings)


def drawn(sizes: Mapping[str, Mapping[str, Any]]) -> str:
    """A whole SVG file of the figures of one pipeline, as `bench.by_pipeline` writes them.

    Raises:
        ValueError: there are no figures.
    """
    lines = {key: [(int(size), of[key]) for size, of in sizes.items() if key in of] for key in LINES}
    lines = {key: sorted(points) for key, points in lines.items() if points}
    if not lines:
        raise ValueError("no figures to draw")
    axes = Axes([point for points in lines.values() for point in points])
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="Seconds a batch over its records">'
    style = "<style>svg { font-family: system-ui, sans-serif; font-size: 12px; fill: #6e7781; }</style>"
    return "\n".join([head, style, *axes.drawn(), *_curves(axes, lines), "</svg>", ""])


class Axes:
    """Where a point lies. Both axes reach to whole powers of ten around all points."""

    def __init__(self, points: Points) -> None:
        self._x = _decades([records for records, _ in points])
        self._y = _decades([seconds for _, seconds in points])

    def at(self, records: float, seconds: float) -> tuple[float, float]:
        """Pixels from the left and from above."""
        x, y = _share(records, self._x), _share(seconds, self._y)
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    def drawn(self) -> Iterator[str]:
        """A thin line and its number for each power of ten."""
        (left, right), (low, high) = self._x, self._y
        for power in range(left, right + 1):
            x, foot = self.at(10**power, 10**low)
            yield f'<path d="M{x:.1f} {TOP}V{foot:.1f}" stroke="#d0d7de"/>'
            yield f'<text x="{x:.1f}" y="{foot + 18:.1f}" text-anchor="middle">{10**power:,}</text>'
        for power in range(low, high + 1):
            x, y = self.at(10**left, 10**power)
            yield f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#d0d7de"/>'
            yield f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} s</text>'
        middle = (LEFT + WIDTH - RIGHT) / 2
        yield f'<text x="{middle:.1f}" y="{HEIGHT - 10}" text-anchor="middle">records a batch</text>'


def _curves(axes: Axes, lines: Mapping[str, Points]) -> Iterator[str]:
    ends = {key: axes.at(*points[-1])[1] for key, points in lines.items()}
    lowest = 0.0
    for key in sorted(lines, key=lambda key: ends[key]):
        name, colour, dashes = LINES[key]
        spots = [axes.at(*point) for point in lines[key]]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
        yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in spots)
        # Names of lines that end close together would cover one another.
        lowest = max(ends[key] + 4, lowest + 14)
        yield f'<text x="{WIDTH - RIGHT + 8}" y="{lowest:.1f}" fill="{colour}">{name}</text>'


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _share(value: float, decades: tuple[int, int]) -> float:
    low, high = decades
    return (math.log10(value) - low) / (high - low)


if __name__ == "__main__":
    found = Path(sys.argv[1])
    print(*beside(found, json.loads(found.read_text())["pipelines"]), sep="\n")
