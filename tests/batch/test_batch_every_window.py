"""Every kind of ordered window, with each accumulation and by both writers, on Spark against the plain rule.

Each user is a record set of its own: 200 of them at random, cut into batches at random, in all tables at once. The same
rules are tried without Spark in tests/machine (`test_triggers.py`, `test_buffers.py`), with crashes, folds and rewinds.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from machine.told import Told
from support.every_window import BOUNDS, Table, added, batches_of, by_user, check, everything, fed, shown
from support.firings import TOLD
from support.ordered import Result
from support.ordered_oracle import WindowOracle, around_records, buffered
from support.session_oracle import SessionOracle
from tidemill import (
    AfterCount,
    AfterWatermark,
    Calendar,
    CountEvictor,
    CountPolicy,
    DeltaEvictor,
    DeltaPolicy,
    Global,
    PunctuationPolicy,
    Sliding,
    SlidingBuffer,
    TimeEvictor,
    Tumbling,
    TumblingBuffer,
)
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.records import Moment

pytestmark = [pytest.mark.spark, pytest.mark.long]

WINDOWS = {
    "Tumbling('10 s')": Tumbling("10 s"),
    "Tumbling('10 s', offset='3 s')": Tumbling("10 s", offset="3 s"),
    "Sliding('12 s', '5 s')": Sliding("12 s", "5 s"),
    "Calendar('day')": Calendar("day"),
    "Calendar('month', 'Europe/London')": Calendar("month", "Europe/London"),
    "Global()": Global(),
}
EVICTORS = {
    "CountEvictor(2)": CountEvictor(2),
    "CountEvictor(2, after=True)": CountEvictor(2, after=True),
    "TimeEvictor('3 s')": TimeEvictor("3 s"),
    "DeltaEvictor('amount', 2)": DeltaEvictor("amount", 2),
}
LATENESS = "8 s"
REPLACING = "accumulating_and_replacing"
MODES = ("discarding", "accumulating", "accumulating_and_retracting", REPLACING)
TRIGGER, TRIGGERED = (
    "AfterWatermark(early=AfterCount(2), late=AfterCount(1))",
    AfterWatermark(AfterCount(2), AfterCount(1)),
)
ENDLESS, EARLY = "AfterWatermark(early=AfterCount(2))", AfterWatermark(early=AfterCount(2))
BUFFERS = {
    "TumblingBuffer(CountPolicy(3))": TumblingBuffer(CountPolicy(3)),
    "TumblingBuffer(DeltaPolicy('amount', 4))": TumblingBuffer(DeltaPolicy("amount", 4)),
    "TumblingBuffer(PunctuationPolicy('marker'))": TumblingBuffer(PunctuationPolicy("marker")),
    "SlidingBuffer(CountPolicy(4), CountPolicy(2))": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
    "SlidingBuffer(CountPolicy(3), DeltaPolicy('amount', 2))": SlidingBuffer(CountPolicy(3), DeltaPolicy("amount", 2)),
    "SlidingBuffer(DeltaPolicy('amount', 3), CountPolicy(2))": SlidingBuffer(DeltaPolicy("amount", 3), CountPolicy(2)),
    "SlidingBuffer(DeltaPolicy('amount', 3), DeltaPolicy('amount', 2))": SlidingBuffer(
        DeltaPolicy("amount", 3), DeltaPolicy("amount", 2)
    ),
}
SESSIONS, GAP = "Session('5 s')", 5_000_000


def of_windows(told: Told, oracle_of: Any, *, bounded: bool, replacing: bool) -> Iterator[tuple[Any, ...]]:
    """User, start, timing, index, whether it is the last one, operation, count and sum of each row."""
    for user, own in by_user(told).items():
        oracle = oracle_of()
        oracle.run(batches_of(told, own), Moment())
        amounts = [event.amount for _, event in own]
        for each in standing(oracle) if replacing else oracle.results:
            taken = [("delete", of, numbers) for of, numbers in each.retracts]
            for operation, of, numbers in [*taken, ("insert", each.window, each.records)]:
                start = of.start if bounded and of is not None else None
                rest = (each.timing.value, each.index, each.is_last, operation, *added(numbers, amounts))
                yield (user, start, *rest)


def standing(oracle: WindowOracle | SessionOracle) -> Iterable[Result]:
    """The firings that no later one replaces."""
    if isinstance(oracle, SessionOracle):
        return oracle.standing
    return {each.window: each for each in oracle.results}.values()


def around(told: Told) -> Iterator[tuple[Any, ...]]:
    """User, start, count and sum of each window that records define."""
    for user, own in by_user(told).items():
        amounts = [event.amount for _, event in own]
        for window, numbers in around_records(10_000_000, batches_of(told, own), Moment()):
            yield (user, window.start, *added(numbers, amounts))


def of_buffers(told: Told, declared: TumblingBuffer | SlidingBuffer) -> Iterator[tuple[Any, ...]]:
    """User, count and sum of each firing."""
    marked = isinstance(getattr(declared, "flush", None), PunctuationPolicy)
    for user, own in by_user(told).items():
        amounts = [event.amount for _, event in own]
        records = [record for batch in batches_of(told, own, marked=marked) for record in batch.records]
        yield from ((user, *added(numbers, amounts)) for numbers in buffered(declared, records))


def fired(window: str, mode: str, evictor: str = "", *, late_sessions: bool = False) -> Table:
    """A table of firings of windows with a trigger; sessions take late records only if that is said."""
    kinds = [kind for kind in TOLD if mode != REPLACING or kind != "operation"]
    told = ", ".join(f'{kind}="{"nth" if kind == "index" else kind}"' for kind in kinds)
    bounded, late = "Global" not in window, window.startswith(("Tumbling", "Sliding")) or late_sessions
    oracle: Any = partial(SessionOracle, GAP, mode, 8_000_000 if late else 0)
    if window in WINDOWS:
        lateness, trigger = LATENESS if late else "0 s", TRIGGERED if bounded else EARLY
        windows = EventWindows(WINDOWS[window].panes, trigger, lateness, mode, EVICTORS.get(evictor))
        oracle = partial(WindowOracle, windows)
    return Table(
        window + (f", allowed_lateness={LATENESS!r}" if late else "") + (f", evictor={evictor}" if evictor else ""),
        partial(of_windows, oracle_of=oracle, bounded=bounded, replacing=mode == REPLACING),
        f'trigger={TRIGGER if bounded else ENDLESS}, accumulation="{mode}", {told}',
        (BOUNDS if bounded else "") + "".join(TOLD[kind] for kind in kinds),
    )


def tables(*, few: bool) -> dict[str, Table]:
    """A table for each kind of window and accumulation; with `few`, only for those that are written differently."""
    named = [window for window in WINDOWS if not few or ("offset" not in window and "London" not in window)]
    every = [(window, mode, "") for window in (*named, SESSIONS) for mode in MODES]
    evicting = [
        ("Tumbling('10 s')", mode, evictor)
        for mode in MODES
        for evictor in EVICTORS
        if not few and (mode != "discarding" or "after" not in evictor)
    ]
    return {
        **{f"windows_{number}": fired(*each) for number, each in enumerate([*every, *evicting])},
        **{f"sessions_{number}": fired(SESSIONS, mode, late_sessions=True) for number, mode in enumerate(MODES)},
        **{f"buffers_{n}": Table(text, partial(of_buffers, declared=BUFFERS[text])) for n, text in enumerate(BUFFERS)},
        "around": Table("RecordWindows('10 s')", around, columns=BOUNDS),
    }


@pytest.mark.parametrize(
    ("writer", "sets", "batches"),
    [("delta-rs", 200, 3), ("spark", 40, 2), pytest.param("spark", 200, 2, marks=pytest.mark.long)],
)
def test_firings_of_random_record_sets_are_those_of_the_plain_rule(
    tmp_path: Path, spark: Any, writer: str, sets: int, batches: int
) -> None:
    # Spark's writer takes seconds for each table, and evictors do not concern it.
    made = tables(few=writer == "spark")
    mill = everything(tmp_path, spark, writer, made)
    told = fed(mill, random.Random(f"{writer}{sets}"), sets, batches)
    check(told, made)
    for table in ("windows_0", "sessions_0"):
        assert {row[2] for row in shown(mill, table)} == {"EARLY", "ON_TIME", "LATE"}
