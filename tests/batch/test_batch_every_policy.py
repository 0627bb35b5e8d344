"""Windows that close or update, totals, and buffers by time, by both writers, on Spark against the plain rule.

As `test_batch_every_window.py` does for triggers: 200 random record sets, cut into batches at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from machine.told import Told
from support.every_window import BOUNDS, Rows, Table, added, batches_of, by_user, check, everything, fed, shown
from support.ordered import Batch
from support.ordered_oracle import aged, buffered_by_time
from support.projects import NOW
from tidemill import (
    Calendar,
    CountPolicy,
    DeltaPolicy,
    PunctuationPolicy,
    Sliding,
    SlidingBuffer,
    TimePolicy,
    Tumbling,
    TumblingBuffer,
)
from tidemill.core.ordered.records import Moment
from tidemill.core.time.panes import Panes, Window
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING

pytestmark = [pytest.mark.spark, pytest.mark.long]

Numbers = dict[Window, list[int]]
"""Windows of one key, with the numbers of their records."""

WINDOWS = {
    "Tumbling('10 s')": Tumbling("10 s").panes,
    "Tumbling('10 s', offset='3 s')": Tumbling("10 s", offset="3 s").panes,
    "Sliding('12 s', '5 s')": Sliding("12 s", "5 s").panes,
    "Calendar('year')": Calendar("year").panes,
    "Calendar('day', 'Europe/London')": Calendar("day", "Europe/London").panes,
}
LATENESS, GAP, TEN = 8_000_000, 5_000_000, 10_000_000
BY_TIME = 'order="event_time"'
AGED = {
    "SlidingBuffer(TimePolicy('6 s'))": SlidingBuffer(TimePolicy("6 s")),
    "SlidingBuffer(TimePolicy('6 s'), CountPolicy(2))": SlidingBuffer(TimePolicy("6 s"), CountPolicy(2)),
    "SlidingBuffer(TimePolicy('6 s'), DeltaPolicy('amount', 2))": SlidingBuffer(
        TimePolicy("6 s"), DeltaPolicy("amount", 2)
    ),
}
SORTED = {
    f"TumblingBuffer(CountPolicy(3), {BY_TIME})": TumblingBuffer(CountPolicy(3)),
    f"TumblingBuffer(DeltaPolicy('amount', 4), {BY_TIME})": TumblingBuffer(DeltaPolicy("amount", 4)),
    f"TumblingBuffer(PunctuationPolicy('marker'), {BY_TIME})": TumblingBuffer(PunctuationPolicy("marker")),
    f"SlidingBuffer(CountPolicy(4), CountPolicy(2), {BY_TIME})": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
    f"SlidingBuffer(TimePolicy('6 s'), DeltaPolicy('amount', 2), {BY_TIME})": SlidingBuffer(
        TimePolicy("6 s"), DeltaPolicy("amount", 2)
    ),
}


def placed(batches: Iterable[Batch]) -> Iterator[tuple[int, int, int]]:
    """Number and time of each record, and the watermark by which it is late."""
    number, before = 0, BEGINNING
    for batch in batches:
        for record in batch.records:
            yield number, record.time, before
            number += 1
        before = batch.after.watermark


def aligned(batches: list[Batch], panes: Panes, lateness: int) -> Numbers:
    found: Numbers = {}
    for number, time, before in placed(batches):
        for window in panes.windows_of(time):
            if window.end + lateness > before:
                found.setdefault(window, []).append(number)
    return found


def sessions(batches: list[Batch], lateness: int) -> Numbers:
    taken = sorted((time, n) for n, time, before in placed(batches) if time + GAP + lateness > before)
    cuts = [0, *(i for i, ((one, _), (other, _)) in enumerate(pairwise(taken), 1) if other - one > GAP), len(taken)]
    parts = [taken[first:last] for first, last in pairwise(cuts) if first < last]
    return {Window(part[0][0], part[-1][0] + GAP): [n for _, n in part] for part in parts}


def of_windows(told: Told, windows_of: Callable[[list[Batch]], Numbers], *, closed: bool) -> Rows:
    """User, start, count and sum of each window that has a record, or of those that have closed."""
    until = told.after[-1][1]
    for user, own in by_user(told).items():
        amounts = [event.amount for _, event in own]
        for window, numbers in windows_of(batches_of(told, own)).items():
            if not closed or window.end <= until:
                yield (user, window.start, *added(numbers, amounts))


def totals(told: Told) -> Rows:
    for user, own in by_user(told).items():
        yield (user, len(own), sum(event.amount for _, event in own))


def of_buffers(told: Told, declared: Any, rule: Callable[..., list[list[int]]]) -> Rows:
    marked = isinstance(getattr(declared, "flush", None), PunctuationPolicy)
    for user, own in by_user(told).items():
        amounts = [event.amount for _, event in own]
        for numbers in rule(declared, batches_of(told, own, marked=marked), Moment()):
            yield (user, *added(numbers, amounts))


def of_the_clock(told: Told) -> Rows:
    """Batches run ten seconds apart, so each is a window, and all but the last have fired."""
    last = len(told.after) - 1
    for user, own in by_user(told).items():
        amounts, first = [event.amount for _, event in own], 0
        for number, batch in enumerate(batches_of(told, own)):
            numbers = range(first, first + len(batch.records))
            first += len(batch.records)
            if numbers and number < last:
                yield (user, micros(NOW) + number * TEN, *added(numbers, amounts))


def tables() -> dict[str, Table]:
    made = list[Table]()
    for trigger in ("on_close", "on_update"):
        more, closed = f'trigger="{trigger}"', trigger == "on_close"
        for window, panes in WINDOWS.items():
            rows = partial(of_windows, windows_of=partial(aligned, panes=panes, lateness=LATENESS), closed=closed)
            made.append(Table(f"{window}, allowed_lateness='8 s'", rows, more, BOUNDS))
        rows = partial(of_windows, windows_of=partial(sessions, lateness=LATENESS), closed=closed)
        made.append(Table("Session('5 s'), allowed_lateness='8 s'", rows, more, BOUNDS))
    made.append(Table("Global()", totals, 'trigger="on_update"'))
    for text, declared in AGED.items():
        made.append(Table(text, partial(of_buffers, declared=declared, rule=aged)))
    for text, declared in SORTED.items():
        made.append(Table(text, partial(of_buffers, declared=declared, rule=buffered_by_time)))
    ended = partial(aligned, panes=WINDOWS["Tumbling('10 s')"], lateness=0)
    made.append(
        Table("TumblingBuffer(TimePolicy('10 s'))", partial(of_windows, windows_of=ended, closed=True), columns=BOUNDS)
    )
    clock = "TumblingBuffer(TimePolicy('10 s', clock='batch_clock'))"
    return {f"table_{n}": table for n, table in enumerate([*made, Table(clock, of_the_clock, columns=BOUNDS)])}


@pytest.mark.parametrize(("writer", "sets", "batches"), [("delta-rs", 200, 4), ("spark", 200, 2)])
def test_rows_of_random_record_sets_are_those_of_the_plain_rule(
    tmp_path: Path, spark: Any, writer: str, sets: int, batches: int
) -> None:
    made = tables()
    told = fed(everything(tmp_path, spark, writer, made), random.Random(f"{writer}{sets}"), sets, batches)
    check(told, made)
    assert all(shown(told.mill, name) for name in made)
