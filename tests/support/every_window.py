"""A pipeline with a table for each kind of window, fed with random record sets, and its rows.

Each user is a record set of its own, cut into batches at random, in all tables at once.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from machine.told import Event, Told
from support.firings import CONTRACT
from support.ordered import Batch, Record
from support.projects import EVENTS_CONTRACT, NOW, Mill, a_project, an_event, rows_of
from tidemill.core.ordered.records import Moment
from tidemill.core.time.times import micros

Rows = Iterable[tuple[Any, ...]]

HEAD = """
from tidemill import *

with Pipeline("firings", every="1 minute", idle_timeout=None) as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="4 s")
    users = events.with_columns(user="coalesce(user, '')", marker="amount = -1").key_by("user")
"""
PUBLISH = """
    (
        users.window(WINDOW).aggregate(n=Count(), amount=Sum("amount"))
        .publish("NAME", contract="NAME"MORE)
    )
"""
BOUNDS = """\
      - {name: window_start, logicalType: timestamp}
      - {name: window_end, logicalType: timestamp}
"""


@dataclass(frozen=True)
class Table:
    """A table: what `window(...)` and `publish(...)` are given, further columns, and the rows of the plain rule."""

    window: str
    rows: Callable[[Told], Rows]
    more: str = ""
    columns: str = ""


def everything(folder: Path, spark: Any, writer: str, tables: Mapping[str, Table]) -> Mill:
    """The pipeline with these tables, by name, and its empty topic of two partitions."""
    pipeline, contracts = HEAD, {"events": EVENTS_CONTRACT.replace("EXTRA", "keep")}
    for name, table in tables.items():
        text = PUBLISH.replace("WINDOW", table.window).replace("NAME", name)
        pipeline += text.replace("MORE", f", {table.more}" if table.more else "")
        lines = [line for line in CONTRACT.splitlines(keepends=True) if "amounts" not in line]
        contracts[name] = "".join(lines).replace("firings", name) + table.columns
    mill = Mill(a_project(folder, pipeline, contracts, writer=writer), spark, "firings")
    mill.log.create_topic("events", partitions=2)
    return mill


def fed(mill: Mill, draw: random.Random, sets: int, batches: int) -> Told:
    """Run so many batches over so many record sets at random; their clocks are ten seconds apart."""
    told, users = Told(mill), [f"u{number:03}" for number in range(sets)]
    for number in range(batches):
        a_batch(draw, told, users)
        told.clock = NOW + timedelta(seconds=10 * number)
        told.run()
    return told


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


def by_user(told: Told) -> dict[str, list[tuple[int, Event]]]:
    """The records that count, with their numbers."""
    found: dict[str, list[tuple[int, Event]]] = defaultdict(list)
    for number, event in enumerate(told.order):
        found[event.user].append((number, event))
    return found


def batches_of(told: Told, own: Sequence[tuple[int, Event]], *, marked: bool = False) -> list[Batch]:
    """The records of a user with their places, batch by batch; of `marked` ones, those of -1 are markers."""
    places = {id(event): ("events", p, n) for p, events in told.log.items() for n, event in enumerate(events)}
    batches, first = list[Batch](), 0
    for until, watermark in told.after:
        part = [event for number, event in own if first <= number < until]
        records = [
            Record(micros(NOW) + e.second * 1_000_000, e.amount, marked and e.amount == -1, places[id(e)]) for e in part
        ]
        batches.append(Batch(records, Moment(watermark)))
        first = until
    return batches


def added(numbers: Sequence[int], amounts: Sequence[int]) -> tuple[int, int | None]:
    """Count and sum of the records with these numbers."""
    return len(numbers), sum(amounts[n] for n in numbers) if numbers else None


def shown(mill: Mill, table: str) -> list[tuple[Any, ...]]:
    """The published rows: user, start, what is told of a firing, count and sum, as far as the table has them."""

    def row(found: dict[str, Any]) -> tuple[Any, ...]:
        start = micros(found["window_start"]) if "window_start" in found else None
        if "timing" not in found:
            return (found["user"], *(() if start is None else (start,)), found["n"], found["amount"])
        told = (found["timing"], found["nth"], found["last"], found.get("operation", "insert"))
        return (found["user"], start, *told, found["n"], found["amount"])

    return sorted((row(each) for each in rows_of(mill.project.published_uri(table))), key=str)


def check(told: Told, tables: Mapping[str, Table]) -> None:
    """Compare each table with the plain rule."""
    for name, table in tables.items():
        assert shown(told.mill, name) == sorted(table.rows(told), key=str), (name, table.window, table.more)
