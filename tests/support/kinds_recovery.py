"""What tests of recovery begin with where state is no pane: sessions, a buffer that fires, totals without a window."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, TOTALS_CONTRACT, Mill, a_project, an_event, sorted_rows
from tidemill.log.reading import read_topic

KINDS = """
from tidemill import Count, CountPolicy, Pipeline, Session, Sum, TumblingBuffer

with Pipeline("kinds", every="1 minute") as pipeline:
    users = (
        pipeline.read("events", contract="events", event_time="ts")
        .filter("coalesce(user, '') != 'nobody'")
        .key_by("user")
    )
    sums = {"n": Count(), "amount": Sum("amount")}
    sessions = users.window(Session("5 seconds"), allowed_lateness="20 s")
    sessions.aggregate(**sums).publish("visits", contract="visits")
    users.aggregate(**sums).publish("totals", contract="totals")
    pairs = users.window(TumblingBuffer(CountPolicy(2)))
    pairs.aggregate(**sums).publish("pairs", contract="pairs")
"""

TABLES = ("visits", "totals", "pairs")
SIZES = {"visits": 8, "totals": 3, "pairs": 7, "quarantine": 2, "late": 2}
"""How many rows each table has in the end."""
READS = [
    *("ledger", "bounds", "scan", "input:events"),
    *(f"records:{table}" for table in TABLES),
    *(f"panes:{table}" for table in TABLES),
    "side_outputs",
]
WRITES = [
    "planned",
    *(f"state:{table}" for table in TABLES),
    "audited",
    "quarantine",
    "late",
    *(f"published:{table}" for table in TABLES),
    "committed",
]
"""The writes of a batch of `a_mill_of_kinds`, in their order."""

BOUNDARIES = [f"{side}:{name}" for name in (*READS, *WRITES) for side in ("before", "after")]
CLAIMED = [
    "after:planned",
    *(f"{side}:{name}" for name in (*READS[3:], *WRITES[1:-1]) for side in ("before", "after")),
    "before:committed",
]
"""From the moment at which the plan is there until the moment before its commit."""

ENDS = {0: (3, 4), 1: (2, 4)}
"""Where the committed batches of `a_mill_of_kinds` ended in each partition."""

Place = tuple[int, int]


class Fact(NamedTuple):
    """What a record says, and whether it came too late for its session."""

    time: datetime
    amount: int
    is_late: bool


def a_mill_of_kinds(folder: Path, session: Any, **settings: Any) -> Mill:
    """Two committed batches with open sessions and a half buffer, and records of every fate for the next.

    They prolong a session, join two of which one was published, and come too late for a third.
    """
    totals = TOTALS_CONTRACT
    contracts = {
        "events": EVENTS_CONTRACT.replace("EXTRA", "keep"),
        "visits": SUMS_CONTRACT.replace("id: sums", "id: visits").replace("name: sums", "name: visits"),
        "pairs": totals.replace("totals", "pairs").replace("primaryKey: true, ", ""),
        "totals": totals,
    }
    mill = Mill(a_project(folder, KINDS, contracts, **settings), session, "kinds")
    mill.log.create_topic("events", partitions=2)
    mill.feed([an_event(1), an_event(2, "b"), an_event(40, "b")])
    mill.feed([an_event(41), an_event(42, "a", 4)], partition=1)
    mill.run()
    mill.feed([an_event(52), an_event(53, "b", 3)])
    mill.feed([an_event(54, "b", 5), an_event(53, "c")], partition=1)
    mill.run()
    mill.feed([an_event(47, "a", 7), an_event(3), b"{cut", an_event(4, "nobody"), an_event(58, "b"), an_event(90)])
    mill.feed([an_event(49, "b", 2), None, an_event(2, "c"), an_event(91, "b")], partition=1)
    return mill


def recomputed(mill: Mill) -> dict[str, list[dict[str, Any]]]:
    """The published tables by a plain computation over the raw log, without what came too late for its session."""
    late, rejected = _places(mill.own("late")), _places(mill.own("quarantine"))
    users: dict[str, list[Fact]] = {}
    for place in sorted(_values(mill).keys() - rejected, key=_turn):
        event = json.loads(_values(mill)[place])
        if event["user"] != "nobody":
            fact = Fact(datetime.fromisoformat(event["ts"]), event["amount"], is_late=place in late)
            users.setdefault(event["user"], []).append(fact)
    return {
        "visits": sorted_rows({**row, "user": user} for user, facts in users.items() for row in _sessions(facts)),
        "pairs": sorted_rows(
            {"user": user, **_summed(facts[at : at + 2])}
            for user, facts in users.items()
            for at in range(0, len(facts) - 1, 2)
        ),
        "totals": sorted_rows({"user": user, **_summed(facts)} for user, facts in users.items()),
    }


def _values(mill: Mill) -> dict[Place, bytes]:
    return {(r.partition, r.offset): r.value or b"" for r in read_topic(mill.log, "events")}


def _places(rows: list[dict[str, Any]]) -> set[Place]:
    return {(row["partition"], row["offset"]) for row in rows}


def _turn(place: Place) -> tuple[int, Place]:
    """Records of a batch come before those of the next one."""
    partition, offset = place
    return sum(offset >= end for end in ENDS[partition]), place


def _sessions(facts: list[Fact]) -> Iterator[dict[str, Any]]:
    gap, inside = timedelta(seconds=5), list[Fact]()
    for fact in (*sorted(fact for fact in facts if not fact.is_late), None):
        if inside and (fact is None or fact.time > inside[-1].time + gap):
            yield {"window_start": inside[0].time, "window_end": inside[-1].time + gap, **_summed(inside)}
            inside = []
        if fact is not None:
            inside.append(fact)


def _summed(facts: list[Fact]) -> dict[str, int]:
    return {"n": len(facts), "amount": sum(fact.amount for fact in facts)}
