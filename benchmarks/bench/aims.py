"""What the bench is to show, and whether it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Figures, ratio
from bench.measured import LATE, Steady

TIMES = {1_000: 8.0, 10_000: 8.0, 100_000: 6.0, 1_000_000: 6.0}
"""How many times faster than AvailableNow, by records a batch."""

TIMES_TUNED = 4.0
SMALL, SMALL_SECONDS = 1_000, 0.3
LARGE, LARGE_RATE = 1_000_000, 0.8e6
TIMES_FLINK, SHARE_OF_DUCKDB, SHARE_ON_KAFKA = 1.5, 0.25, 0.6
GROWTH = 1.05
PAGE_VIEWS, PAGE_VIEWS_SECONDS = 20_000, 0.7
FIRST, FIRST_SECONDS = 1_000, 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """A figure and its bound. `met` is None where the figure was not measured."""

    what: str
    found: float | None
    bound: str
    met: bool | None


def of_sizes(measured: Sequence[Figures], steady: Steady | None) -> list[Aim]:
    """Everything that the sizes and the long run are to show, met or not."""
    found = [aim for each in measured for aim in _of_size(each)]
    what = f"{LATE:,} batches: the last hundred to the second"
    return [*found, _at_most(what, growth(steady) if steady else None, GROWTH, " x")]


def of_others(page_views: float | None, first: float | None) -> list[Aim]:
    """What the reference pipeline and the first batch of a lake are to show, with `PAGE_VIEWS` and `FIRST` records."""
    what = f"page_views, {PAGE_VIEWS:,} lines: seconds"
    return [
        _at_most(what, page_views, PAGE_VIEWS_SECONDS, " s"),
        _at_most(f"first batch, `tidemill run`, {FIRST:,} records: seconds", first, FIRST_SECONDS, " s"),
    ]


def growth(steady: Steady) -> float | None:
    """How many times as long as the second hundred of batches the last one took; None if it was not reached."""
    hundreds = steady.hundreds
    return ratio(hundreds[LATE // 100 - 1], hundreds[1]) if len(hundreds) >= LATE // 100 else None


def _of_size(each: Figures) -> list[Aim]:
    size, found = f"{each.size:,} records", list[Aim]()
    if least := TIMES.get(each.size):
        found.append(_at_least(f"{size}: times faster than AvailableNow", each.vs_available_now, least, " x"))
        found.append(_at_least(f"{size}: times faster than the tuned one", each.vs_tuned, TIMES_TUNED, " x"))
    if each.size == SMALL:
        found.append(_at_most(f"{size}: seconds", each.tidemill, SMALL_SECONDS, " s"))
    if each.size == LARGE:
        rate, ours = ratio(LARGE, each.tidemill), each.tidemill
        found += [
            _at_least(f"{size}: records a second", rate, LARGE_RATE, ""),
            _at_least(f"{size}: times the rate of Flink SQL", ratio(each.flink, ours), TIMES_FLINK, " x"),
            _at_least(f"{size}: share of DuckDB's rate", ratio(each.duckdb, ours), SHARE_OF_DUCKDB, ""),
            _at_least(f"{size}: on Kafka, share of the file log's rate", ratio(ours, each.kafka), SHARE_ON_KAFKA, ""),
        ]
    return found


def _at_least(what: str, found: float | None, bound: float, unit: str) -> Aim:
    met = None if found is None else found >= bound
    return Aim(what=what, found=found, bound=f"at least {bound:,g}{unit}", met=met)


def _at_most(what: str, found: float | None, bound: float, unit: str) -> Aim:
    met = None if found is None else found <= bound
    return Aim(what=what, found=found, bound=f"at most {bound:,g}{unit}", met=met)
