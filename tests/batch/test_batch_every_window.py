"""Every kind of ordered window, with each accumulation and by both writers, on Spark against the plain rule.

Each user is a record set of its own: 200 of them at random, cut into batches at random, in all tables at once. The same
rules are tried without Spark in tests/machine (`test_triggers.py`, `test_buffers.py`), with crashes, folds and rewinds.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from machine.told import Event, Told
from support.firings import CONTRACT, TOLD
from support.ordered import Batch, Record, Result
from support.ordered_oracle import WindowOracle, around_records, buffered
from support.projects import EVENTS_CONTRACT, NOW, Mill, a_project, an_event, rows_of
from support.session_oracle import SessionOracle
from tidemill import (
    AfterCount,
    AfterWatermark,
    Calendar,
    CountPolicy,
    DeltaPolicy,
    Global,
    PunctuationPolicy,
    Sliding,
    SlidingBuffer,
    Tumbling,
    TumblingBuffer,
)
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.ordered.policies import PunctuationPolicy as Marked
from tidemill.core.ordered.records import Moment
from tidemill.core.time.times import micros

pytestmark = [pytest.mark.spark, pytest.mark.long]

WINDOWS = {
    "Tumbling('10 s')": Tumbling("10 s"),
    "Sliding('12 s', '5 s')": Sliding("12 s", "5 s"),
    "Calendar('day')": Calendar("day"),
    "Global()": Global(),
}
LATENESS = {"Tumbling('10 s')": "8 s", "Sliding('12 s', '5 s')": "8 s"}
REPLACING = "accumulating_and_replacing"
MODES = ("discarding", "accumulating", "accumulating_and_retracting", REPLACING)
TRIGGER, ENDLESS = "AfterWatermark(early=AfterCount(2), late=AfterCount(1))", "AfterWatermark(early=AfterCount(2))"
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
AROUND = "RecordWindows('10 s')"
SESSION, GAP = "Session('5 s')", 5_000_000
FIRED = [(window, mode) for window in (*WINDOWS, SESSION) for mode in MODES]

HEAD = """
from tidemill import *

with Pipeline("firings", every="1 minute", idle_timeout=None) as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="4 s")
    users = events.with_columns(user="coalesce(user, '')", marker="amount = -1").key_by("user")
"""
PUBLISH = """
    (
        users.window(WINDOWLATENESS).aggregate(n=Count(), amount=Sum("amount"))
        .publish("NAME", contract="NAME"MORE)
    )
"""
BOUND = """\
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
"""


def published(window: str, name: str, more: str = "") -> str:
    lateness = f", allowed_lateness={LATENESS[window]!r}" if window in LATENESS else ""
    text = PUBLISH.replace("WINDOW", window).replace("LATENESS", lateness)
    return text.replace("NAME", name).replace("MORE", more)


def contract(name: str, more: str = "") -> str:
    lines = [line for line in CONTRACT.splitlines(keepends=True) if "amounts" not in line]
    return "".join(lines).replace("firings", name) + more


def everything(folder: Path, spark: Any, writer: str) -> Mill:
    pipeline, contracts = HEAD, {"events": EVENTS_CONTRACT.replace("EXTRA", "keep")}
    for number, (window, mode) in enumerate(FIRED):
        name, kinds = f"windows_{number}", [kind for kind in TOLD if mode != REPLACING or kind != "operation"]
        said = ENDLESS if "Global" in window else TRIGGER
        told = ", ".join(f'{kind}="{"nth" if kind == "index" else kind}"' for kind in kinds)
        pipeline += published(window, name, f', trigger={said}, accumulation="{mode}", {told}')
        contracts[name] = contract(name, ("" if "Global" in window else BOUND) + "".join(TOLD[k] for k in kinds))
    for number, window in enumerate(BUFFERS):
        pipeline += published(window, f"buffers_{number}")
        contracts[f"buffers_{number}"] = contract(f"buffers_{number}")
    pipeline, contracts["around"] = pipeline + published(AROUND, "around"), contract("around", BOUND)
    mill = Mill(a_project(folder, pipeline, contracts, writer=writer), spark, "firings")
    mill.log.create_topic("events", partitions=2)
    return mill


def a_batch(draw: random.Random, told: Told, users: Sequence[str]) -> None:
    """Feed what comes before the next cut: some records of each user, out of order by up to 12 s."""
    fed: dict[int, list[Event]] = {0: [], 1: []}
    for user in users:
        for _ in range(draw.randint(0, 6)):
            second = 10 * len(told.after) + draw.randint(-12, 10)
            fed[draw.randint(0, 1)].append(Event(second, user, draw.choice([-1, 1, 2, 3, 5, 8])))
    for partition, events in fed.items():
        draw.shuffle(events)
        told.log[partition] += events
        told.mill.feed([an_event(*event) for event in events], partition=partition)


def of_windows(told: Told, window: str, mode: str) -> Iterator[tuple[Any, ...]]:
    """User, start, timing, index, whether it is the last one, operation, count and sum of each row."""
    for user, own in by_user(told).items():
        oracle = oracle_of(window, mode)
        oracle.run(batches_of(told, own), Moment())
        amounts = [event.amount for _, event in own]
        for each in standing(oracle) if mode == REPLACING else oracle.results:
            taken = [("delete", of, numbers) for of, numbers in each.retracts]
            for operation, of, numbers in [*taken, ("insert", each.window, each.records)]:
                start = None if of is None or window == "Global()" else of.start
                rest = (each.timing.value, each.index, each.is_last, operation, *added(numbers, amounts))
                yield (user, start, *rest)


def oracle_of(window: str, mode: str) -> WindowOracle | SessionOracle:
    if window == SESSION:
        return SessionOracle(GAP, mode)
    trigger = EARLY if window == "Global()" else TRIGGERED
    return WindowOracle(EventWindows(WINDOWS[window].panes, trigger, LATENESS.get(window, "0 s"), mode))


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


def batches_of(told: Told, own: Sequence[tuple[int, Event]]) -> list[Batch]:
    """The records of a user, batch by batch."""
    batches, first = list[Batch](), 0
    for until, watermark in told.after:
        part = [event for number, event in own if first <= number < until]
        records = [Record(micros(NOW) + e.second * 1_000_000, e.amount) for e in part]
        batches.append(Batch(records, Moment(watermark)))
        first = until
    return batches


TRIGGERED = AfterWatermark(early=AfterCount(2), late=AfterCount(1))
EARLY = AfterWatermark(early=AfterCount(2))


def of_buffers(told: Told, text: str) -> Iterator[tuple[Any, ...]]:
    """User, count and sum of each firing."""
    declared = BUFFERS[text]
    marked = isinstance(getattr(declared, "flush", None), Marked)
    for user, own in by_user(told).items():
        amounts = [event.amount for _, event in own]
        records = [Record(value=amount, marker=marked and amount == -1) for amount in amounts]
        yield from ((user, *added(numbers, amounts)) for numbers in buffered(declared, records))


def by_user(told: Told) -> dict[str, list[tuple[int, Event]]]:
    """The records that count, with their numbers."""
    found: dict[str, list[tuple[int, Event]]] = defaultdict(list)
    for number, event in enumerate(told.order):
        found[event.user].append((number, event))
    return found


def added(numbers: Sequence[int], amounts: Sequence[int]) -> tuple[int, int | None]:
    return len(numbers), sum(amounts[n] for n in numbers) if numbers else None


def shown(mill: Mill, table: str) -> list[tuple[Any, ...]]:
    def row(found: dict[str, Any]) -> tuple[Any, ...]:
        start = micros(found["window_start"]) if "window_start" in found else None
        if "timing" not in found:
            return (found["user"], *(() if start is None else (start,)), found["n"], found["amount"])
        told = (found["timing"], found["nth"], found["last"], found.get("operation", "insert"))
        return (found["user"], start, *told, found["n"], found["amount"])

    return sorted((row(each) for each in rows_of(mill.project.published_uri(table))), key=str)


@pytest.mark.parametrize(
    ("writer", "sets", "batches"),
    [("delta-rs", 200, 3), ("spark", 40, 2), pytest.param("spark", 200, 2, marks=pytest.mark.long)],
)
def test_firings_of_random_record_sets_are_those_of_the_plain_rule(
    tmp_path: Path, spark: Any, writer: str, sets: int, batches: int
) -> None:
    mill, draw = everything(tmp_path, spark, writer), random.Random(f"{writer}{sets}")
    told, users = Told(mill), [f"u{number:03}" for number in range(sets)]
    for _ in range(batches):
        a_batch(draw, told, users)
        told.run()
    for number, (window, mode) in enumerate(FIRED):
        assert shown(mill, f"windows_{number}") == sorted(of_windows(told, window, mode), key=str), (window, mode)
    for number, text in enumerate(BUFFERS):
        assert shown(mill, f"buffers_{number}") == sorted(of_buffers(told, text), key=str), text
    assert shown(mill, "around") == sorted(around(told), key=str)
    assert {row[2] for row in shown(mill, "windows_0")} == {"EARLY", "ON_TIME", "LATE"}
