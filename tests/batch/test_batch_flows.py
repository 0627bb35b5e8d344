"""Several sinks, splits, unions and all aggregates, compared with one plain computation over the records."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.projects import EVENTS_CONTRACT, Mill, a_project, an_event
from support.writers import WRITERS
from tidemill.core.errors import AuditBlocked
from tidemill.core.protocol.failpoints import VARIABLE, Injected

pytestmark = pytest.mark.spark

TABLE = """
apiVersion: v3.1.0
kind: DataContract
id: NAME
version: 1.0.0
status: active
schema:
  - name: NAME
    logicalType: object
    properties:
"""


def a_table(name: str, columns: Mapping[str, str]) -> str:
    """A contract of a table whose columns have these ODCS types."""
    lines = [f"      - {{name: {c}, {'logicalType: ' + t if ':' not in t else t}}}" for c, t in columns.items()]
    return TABLE.replace("NAME", name) + "\n".join(lines) + "\n"


WINDOW = {"window_start": "timestamp", "window_end": "timestamp"}
EVENTS = EVENTS_CONTRACT.replace("EXTRA", "keep")


def a_mill(
    folder: Path, spark: Any, pipeline: str, contracts: Mapping[str, str], topics: tuple[str, ...], **settings: Any
) -> Mill:
    mill = Mill(a_project(folder, "from tidemill import *\n" + pipeline, contracts, **settings), spark, "p")
    for topic in topics:
        mill.log.create_topic(topic, partitions=1)
    return mill


SPLIT = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    parts = events.split(big="amount >= 5", small="amount >= 0", default="odd")
    for name in ("big", "small"):
        parts[name].window(Tumbling("10 s")).aggregate(n=Count()).publish(name, contract=name)
    parts["odd"].select("user", "amount").publish("odd", contract="odd")
    events.filter("user = 'nobody'").discard()
"""


def split_mill(folder: Path, spark: Any) -> Mill:
    contracts = {n: a_table(n, {**WINDOW, "n": "integer"}) for n in ("big", "small")}
    odd = a_table("odd", {"user": "string", "amount": "integer"})
    return a_mill(folder, spark, SPLIT, {"events": EVENTS, "odd": odd, **contracts}, ("events",))


@pytest.mark.parametrize("limit", [2, 100])
def test_a_split_sends_every_row_to_exactly_one_sink(tmp_path: Path, spark: Any, limit: int) -> None:
    mill = split_mill(tmp_path, spark)
    amounts = [9, 5, 4, 0, -1, -7, None]
    mill.feed(an_event(i, str(i), amount) for i, amount in enumerate(amounts))
    commits = mill.catch_up(limit=limit)
    assert [r["n"] for r in mill.published("big")] == [2]
    assert [r["n"] for r in mill.published("small")] == [2]
    assert [r["amount"] for r in mill.published("odd")] == [-1, -7, None]
    assert sum(c.accounts["events"].aggregated for c in commits) == 7


def test_a_record_that_one_sink_refuses_and_another_takes_is_counted_once(tmp_path: Path, spark: Any) -> None:
    mill = split_mill(tmp_path, spark)
    mill.feed([an_event(30, amount=9)])
    mill.run()
    mill.feed([an_event(1, amount=9), an_event(1, amount=-1), b"broken"])
    account = mill.run().accounts["events"]
    assert str(account) == "read=3 aggregated=1 filtered=0 rejected=1 late=1 shed=0"
    assert [r["table_name"] for r in mill.own("late")] == ["big"]


@pytest.mark.parametrize("table", ["small", *(pytest.param(t, marks=pytest.mark.long) for t in ("big", "odd"))])
def test_a_batch_interrupted_between_its_tables_leaves_what_an_unbroken_run_leaves(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    unbroken, mill = split_mill(tmp_path / "unbroken", spark), split_mill(tmp_path / "torn", spark)
    for one in (unbroken, mill):
        one.feed([an_event(30, amount=9)])
        one.run()
        one.feed([*(an_event(30 + i, amount=i - 2) for i in range(10)), an_event(1, amount=9), b"broken"])
    unbroken.catch_up()
    monkeypatch.setenv(VARIABLE, f"published:{table}=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    there = [name for name in ("big", "small", "odd") if mill.published(name)]
    assert there == ["big", "small", "odd"][: len(there)]
    assert there[-1] == table
    assert mill.run(drain=True).attempt == 2
    assert mill.everything() == unbroken.everything()
    assert all(unbroken.everything().values())


UNION = """
with Pipeline("p", every="1 minute") as pipeline:
    left = pipeline.read("events", contract="events", event_time="ts")
    right = pipeline.read("others", contract="others", event_time="ts", delay="20 s")
    merged = left.union(right.with_columns(user="upper(user)"))
    merged.key_by("user").window(Tumbling("10 s")).aggregate(n=Count()).publish("t", contract="t")
"""


def test_a_union_counts_per_input_and_waits_for_the_slower_one(tmp_path: Path, spark: Any) -> None:
    contracts = {
        "events": EVENTS,
        "others": EVENTS.replace("id: events", "id: others").replace("name: events", "name: others"),
        "t": a_table("t", {**WINDOW, "user": "string", "n": "integer"}),
    }
    mill = a_mill(tmp_path, spark, UNION, contracts, ("events", "others"))
    mill.feed([an_event(1), an_event(2), an_event(30)])
    mill.feed([an_event(3, "b"), b"broken", an_event(25, "b")], topic="others")
    commit = mill.run()
    assert {t: a.aggregated for t, a in commit.accounts.items()} == {"events": 3, "others": 2}
    assert commit.accounts["others"].rejected == 1
    assert mill.published("t") == []
    mill.feed([an_event(40, "b")], topic="others")
    mill.run()
    assert {r["user"]: r["n"] for r in mill.published("t")} == {"a": 2, "B": 1}


ALL = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts", delay="1 hour")
    events.window(Tumbling("1 minute")).aggregate(
        n=Count(), known=Count("user"), big=CountIf("amount > 50"), total=Sum("amount"), low=Min("amount"),
        high=Max("amount"), mean=Average("amount"), var=Variance("amount"), dev=StdDev("amount"),
        first=First("user"), last=Last("user"), about=ApproxDistinct("user"), users=Distinct("user"),
        medians=Quantiles("amount", ranks=(0.0, 0.5, 1.0)), top=HeavyHitters("user", k=2), names=Collect("user"),
        product=Custom(
            partial={"logs": "sum(ln(amount + 1000))"}, merge={"logs": "sum({logs})"}, finish="exp({logs} / 100)"
        ),
    ).publish("t", contract="t")
"""
TYPES = {
    **dict.fromkeys(("n", "known", "big", "total", "low", "high", "about", "users"), "integer"),
    **dict.fromkeys(("mean", "var", "dev", "product"), "number"),
    **dict.fromkeys(("first", "last"), "string"),
    "medians": "logicalType: array, items: {logicalType: number}",
    "names": "logicalType: array, items: {logicalType: string}",
    "top": "logicalType: array, items: {logicalType: object, properties: "
    "[{name: item, logicalType: string}, {name: count, logicalType: integer}]}",
}


@pytest.mark.parametrize("limit", [pytest.param(7, marks=pytest.mark.long), 40, 1_000])
def test_every_aggregate_equals_a_plain_computation_however_the_log_is_cut(
    tmp_path: Path, spark: Any, limit: int
) -> None:
    contract = a_table("t", {**WINDOW, **TYPES})
    mill = a_mill(tmp_path, spark, ALL, {"events": EVENTS, "t": contract}, ("events",))
    events = [((i * 37) % 59, f"u{i % 5}" if i % 7 else None, (i * 31) % 101 - 20) for i in range(100)]
    mill.feed(an_event(*event) for event in events)
    mill.catch_up(limit=limit)
    (row,) = mill.published("t")
    users, amounts = [u for _, u, _ in events if u], [a for _, _, a in events]
    ordered = [u for _, _, u in sorted((t, i, u) for i, (t, u, _) in enumerate(events))]
    exact = {
        "n": 100,
        "known": len(users),
        "big": sum(a > 50 for a in amounts),
        "total": sum(amounts),
        "low": min(amounts),
        "high": max(amounts),
        "first": ordered[0],
        "last": ordered[-1],
        "about": 5,
        "users": 5,
        "names": [u for u in ordered if u],
    }
    assert {k: row[k] for k in exact} == exact
    assert math.isclose(row["mean"], statistics.mean(amounts), rel_tol=1e-12)
    assert math.isclose(row["var"], statistics.variance(amounts), rel_tol=1e-9)
    assert math.isclose(row["dev"], statistics.stdev(amounts), rel_tol=1e-9)
    assert math.isclose(row["product"], math.exp(sum(math.log(a + 1000) for a in amounts) / 100), rel_tol=1e-9)
    assert row["medians"][0] == min(amounts)
    assert row["medians"][2] == max(amounts)
    assert [t["count"] for t in row["top"]] == sorted((users.count(u) for u in set(users)), reverse=True)[:2]


ROWS = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.select("user", "amount").publish("t", contract="t")
"""


@pytest.mark.parametrize("writer", WRITERS)
def test_rows_as_they_are_are_appended_once(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    contracts = {"events": EVENTS, "t": a_table("t", {"user": "string", "amount": "integer"})}
    mill = a_mill(tmp_path, spark, ROWS, contracts, ("events",), writer=writer)
    mill.feed(an_event(i, str(i), i) for i in range(10))
    monkeypatch.setenv(VARIABLE, "published:t=raise")
    with pytest.raises(Injected):
        mill.run(limit=5)
    monkeypatch.delenv(VARIABLE)
    assert len(mill.published("t")) == 5
    mill.catch_up(limit=5)
    assert sorted(r["amount"] for r in mill.published("t")) == list(range(10))
    assert not (tmp_path / "lake" / "pipelines" / "p" / "state").exists()


def test_rows_are_audited_before_they_are_appended(tmp_path: Path, spark: Any) -> None:
    strict = a_table("t", {"user": "string", "amount": "logicalType: integer, required: true"})
    mill = a_mill(tmp_path, spark, ROWS, {"events": EVENTS, "t": strict}, ("events",))
    mill.feed([an_event(1), an_event(2, amount=None)])
    with pytest.raises(AuditBlocked, match="amount"):
        mill.run()
    assert mill.published("t") == []
