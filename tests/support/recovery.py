"""What tests of recovery begin with: a batch that writes to every table, and the places where it can be interrupted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import EVENTS_CONTRACT, SUMS_CONTRACT, Mill, a_project, an_event, somebody, sorted_rows, sums
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.log.reading import read_topic

WRITES = ["planned", "state:sums", "audited", "quarantine", "late", "published:sums", "committed"]
"""The writes of a batch of `a_begun_mill`, in their order: each has a failpoint right after it."""


def a_begun_mill(folder: Path, session: Any, **settings: Any) -> Mill:
    """One committed batch, and records of every fate for the next."""
    mill = sums(folder, session, lateness="20 s", **settings)
    mill.feed([an_event(1), an_event(2, "b"), an_event(50)])
    mill.run()
    mill.feed([an_event(31, amount=7), an_event(3), b"{cut", an_event(4, "nobody"), an_event(61), an_event(52, "b")])
    return mill


WIDE = """
from tidemill import Count, Pipeline, Sum, Tumbling

with Pipeline("wide", every="1 minute") as pipeline:
    shop = pipeline.read("shop", contract="shop", event_time="ts")
    web = pipeline.read("web", contract="web", event_time="ts")
    known = shop.union(web).filter("coalesce(user, '') != 'nobody'")
    by_user = known.key_by("user").window(Tumbling("10 seconds"), allowed_lateness="20 s")
    by_user.aggregate(n=Count(), amount=Sum("amount")).publish("sums", contract="sums")
    known.window(Tumbling("10 seconds")).aggregate(n=Count()).publish("totals", contract="totals", trigger="on_update")
"""

TOTALS_CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: totals
version: 1.0.0
status: active
schema:
  - name: totals
    logicalType: object
    properties:
      - {name: window_start, logicalType: timestamp, required: true, primaryKey: true}
      - {name: window_end, logicalType: timestamp, required: true}
      - {name: n, logicalType: integer, required: true}
"""

TOPICS = ("shop", "web")

WIDE_READS = [
    "ledger",
    "bounds",
    "scan",
    "input:shop",
    "input:web",
    "records:sums",
    "records:totals",
    "panes:sums",
    "panes:totals",
    "side_outputs",
]
"""What a batch of `a_wide_mill` reads."""

WIDE_WRITES = [
    "planned",
    "state:sums",
    "state:totals",
    "audited",
    "quarantine",
    "late",
    "published:sums",
    "published:totals",
    "committed",
]
"""The writes of a batch of `a_wide_mill`, in their order."""


def a_wide_mill(folder: Path, session: Any, *, prefix: str = "", **settings: Any) -> Mill:
    """Two inputs and two published tables; one committed batch, and records of every fate for the next.

    The names of the topics in the log begin with `prefix`.
    """
    events = EVENTS_CONTRACT.replace("EXTRA", "keep")
    inputs = {t: events.replace("id: events", f"id: {t}").replace("name: events", f"name: {t}") for t in TOPICS}
    contracts = {**inputs, "sums": SUMS_CONTRACT, "totals": TOTALS_CONTRACT}
    text = WIDE
    for topic in TOPICS:
        text = text.replace(f'read("{topic}"', f'read("{prefix}{topic}"')
    mill = Mill(a_project(folder, text, contracts, **settings), session, "wide")
    shop, web = (f"{prefix}{topic}" for topic in TOPICS)
    for topic in (shop, web):
        mill.log.create_topic(topic, partitions=1)
    mill.feed([an_event(1), an_event(2, "b"), an_event(50)], topic=shop)
    mill.feed([an_event(5), an_event(48, "b")], topic=web)
    mill.run()
    mill.feed([an_event(31, amount=7), an_event(3), b"{cut", an_event(4, "nobody"), an_event(61)], topic=shop)
    mill.feed([an_event(52, "b"), None, an_event(33, "b"), an_event(2, "c"), an_event(70)], topic=web)
    return mill


def paused(monkeypatch: Any, place: str, meanwhile: Callable[[], None]) -> list[str]:
    """Lets `meanwhile` happen the first time that a batch comes to a place; gives what has happened."""
    happened: list[str] = []

    def reach(side: str, name: str, _: int) -> None:
        if f"{side}:{name}" == place and not happened:
            happened.append(place)
            meanwhile()

    monkeypatch.setattr(failpoints, "_reach", reach)
    return happened


def finish(mill: Mill, later: int, *, drain: bool = False) -> None:
    """Another try of the task that holds the open batch completes it, and some more."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    opened = mill.project.ledger(mill.name).view().open_batch
    mill.run(executor=opened.executor if opened else somebody("the faster"), clock=tomorrow, drain=drain)
    for number in range(later):
        mill.feed([an_event(80 + 20 * number, "z")], topic="shop")
        mill.feed([an_event(81 + 20 * number, "z")], topic="web")
        mill.run(executor=somebody("the faster"), clock=tomorrow)


def recomputed(mill: Mill) -> dict[str, list[dict[str, Any]]]:
    """The published tables of a wide mill by a plain computation over the raw log, without late records."""
    late = {(r["topic"], r["offset"], r["table_name"]) for r in mill.own("late")}
    rejected = {(r["topic"], r["offset"]) for r in mill.own("quarantine")}
    sums: dict[tuple[datetime, str], list[int]] = {}
    totals: Counter[datetime] = Counter()
    for topic in TOPICS:
        for record in read_topic(mill.log, topic):
            place = (topic, record.offset)
            if place in rejected:
                continue
            event = json.loads(record.value or b"")
            time = datetime.fromisoformat(event["ts"])
            start = time - timedelta(seconds=time.second % 10, microseconds=time.microsecond)
            if event["user"] == "nobody":
                continue
            if (*place, "sums") not in late:
                found = sums.setdefault((start, event["user"]), [0, 0])
                found[0] += 1
                found[1] += event["amount"]
            totals[start] += (*place, "totals") not in late
    width = timedelta(seconds=10)
    return {
        "sums": sorted_rows(
            {"window_start": s, "window_end": s + width, "user": u, "n": n, "amount": a}
            for (s, u), (n, a) in sums.items()
        ),
        "totals": sorted_rows({"window_start": s, "window_end": s + width, "n": n} for s, n in totals.items() if n),
    }


def fail(mill: Mill, monkeypatch: Any, action: str) -> None:
    """Run a batch that fails as asked, or loses an answer and gets over it."""
    monkeypatch.setenv(VARIABLE, action)
    if action.endswith("=lose"):
        mill.run(drain=True)
        assert failpoints._lost
    else:
        with pytest.raises(Injected):
            mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)


def fail_or_commit(mill: Mill) -> None:
    """One more try, which may fail where the one before did."""
    try:
        mill.run(drain=True)
    except Injected:
        return
