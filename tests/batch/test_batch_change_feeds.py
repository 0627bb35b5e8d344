"""A pipeline that reads the firings of another one from a topic, and sums them by another key."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from support.projects import EVENTS_CONTRACT, NO_SPARK, NOW, Mill, a_project, an_event
from support.sending import let_files_send

PIPELINES = """
from tidemill import AfterCount, AfterWatermark, Count, Pipeline, Sum, Tumbling

with Pipeline("visits", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="1 minute")
    minutes = events.key_by("user").window(Tumbling("1 minute"), allowed_lateness="1 hour")
    minutes.aggregate(n=Count(), amount=Sum("amount")).publish(
        "visits",
        contract="visits",
        trigger=AfterWatermark(early=AfterCount(1), late=AfterCount(1)),
        accumulation="accumulating_and_retracting",
        operation="operation",
        topic="visits-changes",
    )

with Pipeline("totals", every="1 minute") as pipeline:
    changes = pipeline.read("visits-changes", contract="changes").with_columns(
        sign="CASE WHEN operation = 'delete' THEN -1 ELSE 1 END", tens="amount div 10", minute="window_start"
    )
    by_minute = changes.with_columns(n="sign * n", amount="sign * amount").key_by("minute")
    by_minute.aggregate(n=Sum("n"), amount=Sum("amount")).publish("by_minute", contract="by_minute")
    changes.key_by("tens").aggregate(users=Sum("sign")).filter("users <> 0").publish("by_tens", contract="by_tens")
"""
HEAD = "apiVersion: v3.1.0\nkind: DataContract\nid: NAME\nversion: 1.0.0\nstatus: active\nschema:\n"
HEAD += "  - name: NAME\n    logicalType: object\nMORE    properties:\n"
JSON = "    customProperties:\n      - {property: format, value: json}\n"
OF_MINUTE = {"window_start": "timestamp", "window_end": "timestamp"}
TOTALS = {"n": "integer", "amount": "integer"}
CHANGE = {**OF_MINUTE, "user": "string", **TOTALS, "operation": "string"}


def contract(name: str, columns: dict[str, str], *, key: str = "", more: str = "") -> str:
    lines = [
        f"      - {{name: {column}, logicalType: {kind}, required: true{', primaryKey: true' * (column == key)}}}\n"
        for column, kind in columns.items()
    ]
    return HEAD.replace("NAME", name).replace("MORE", more) + "".join(lines)


@pytest.fixture
def mills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Mill, Mill]:
    """The pipeline that sends its firings, and the one that sums them."""
    let_files_send(monkeypatch)
    contracts = {
        "events": EVENTS_CONTRACT.replace("EXTRA", "keep"),
        "visits": contract("visits", CHANGE),
        "changes": contract("changes", CHANGE, more=JSON),
        "by_minute": contract("by_minute", {"minute": "timestamp", **TOTALS}, key="minute"),
        "by_tens": contract("by_tens", {"tens": "integer", "users": "integer"}, key="tens"),
    }
    project = a_project(tmp_path, PIPELINES, contracts)
    first, second = (Mill(project, NO_SPARK, name) for name in ("visits", "totals"))
    first.log.create_topic("events", partitions=1)
    first.log.create_topic("visits-changes", partitions=2)
    return first, second


def test_row_51_what_reads_a_change_feed_sums_it_by_another_key(mills: tuple[Mill, Mill]) -> None:
    (first, second), draw = mills, random.Random(51)
    counts, amounts = Counter[datetime](), Counter[tuple[datetime, str]]()
    grew = set[tuple[datetime, str]]()
    for batch in range(6):
        before = dict(amounts)
        for _ in range(8):
            at, user, amount = 30 * batch + draw.randrange(60), draw.choice("abc"), draw.randrange(1, 9)
            minute = NOW + timedelta(seconds=at - at % 60)
            first.feed([an_event(at, user, amount)])
            counts[minute] += 1
            amounts[minute, user] += amount
        grew |= {total for total, amount in before.items() if amounts[total] // 10 > amount // 10}
        first.run()
        second.run(limit=7 if batch % 2 else None)
        second.catch_up(drain=False)
        found = {row["minute"]: (row["n"], row["amount"]) for row in second.published("by_minute")}
        assert found == {minute: (n, amount_of(minute, amounts)) for minute, n in counts.items()}
        tens = {row["tens"]: row["users"] for row in second.published("by_tens")}
        assert tens == Counter(amount // 10 for amount in amounts.values())
    assert len(grew) > 3, "totals move from one group to another, also between batches"


def amount_of(minute: datetime, amounts: Counter[tuple[datetime, str]]) -> int:
    return sum(amount for (start, _), amount in amounts.items() if start == minute)
