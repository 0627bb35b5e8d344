"""Keys of single rows: no two rows of the whole table have the same, whichever batches wrote them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch.test_batch_flows import EVENTS, a_mill, a_table
from support.commands import type_command
from support.projects import Mill, an_event
from support.writers import WRITERS
from tidemill.core.errors import AuditBlocked
from tidemill.core.protocol.failpoints import VARIABLE, Injected

pytestmark = pytest.mark.spark

ROWS = """
with Pipeline("p", every="1 minute") as pipeline:
    events = pipeline.read("events", contract="events", event_time="ts")
    events.select("ts", "user", "amount").publish("rows", contract="rows")
"""
KEYS = {
    "text": {"ts": "timestamp", "user": "string, primaryKey: true", "amount": "integer"},
    "number": {"ts": "timestamp", "user": "string", "amount": "integer, unique: true"},
    "time": {"ts": "timestamp, unique: true", "user": "string", "amount": "integer"},
    "two columns": {
        "ts": "timestamp",
        "user": "string, primaryKey: true, primaryKeyPosition: 1",
        "amount": "integer, primaryKey: true, primaryKeyPosition: 2",
    },
}
RULES = {"text": "primaryKey", "number": "amount.unique", "time": "ts.unique", "two columns": "primaryKey"}

Make = Callable[..., Mill]


@pytest.fixture
def make(tmp_path: Path, spark: Any) -> Make:
    def made(key: str = "text", **settings: Any) -> Mill:
        columns = {name: f"logicalType: {kind}" for name, kind in KEYS[key].items()}
        contracts = {"events": EVENTS, "rows": a_table("rows", columns)}
        return a_mill(tmp_path, spark, ROWS, contracts, ("events",), **settings)

    return made


def type_at(mill: Mill, *words: object) -> str:
    said = type_command(mill.project.folder, *words, session=lambda _: mill.session)
    assert said.code == 0, said.err
    return said.out


@pytest.mark.parametrize(
    ("key", "writer"),
    [
        *((key, "delta-rs") for key in KEYS),
        *(pytest.param(key, "spark", marks=pytest.mark.long) for key in ("text", "two columns")),
    ],
)
def test_a_key_of_an_earlier_batch_blocks(make: Make, key: str, writer: str) -> None:
    mill = make(key, writer=writer)
    mill.feed([an_event(1, "a", 1), an_event(2, "b", 2)])
    mill.run()
    mill.feed([an_event(3, "c", 3)])
    mill.run()
    before = mill.published("rows")
    mill.feed([an_event(4, "d", 4), an_event(2, "b", 2)])
    with pytest.raises(AuditBlocked, match=rf"error rows: {RULES[key]}: 1 of 2 rows"):
        mill.run()
    assert mill.published("rows") == before
    shown = type_at(mill, "audit", "show", "p")
    assert "1 of 2 rows" in shown


def test_keys_that_are_null_agree_with_nothing(make: Make) -> None:
    mill = make("number")
    for _ in range(2):
        mill.feed([an_event(1, "a", None)])
        mill.run()
    assert len(mill.published("rows")) == 2


@pytest.mark.parametrize("writer", WRITERS)
def test_a_batch_is_not_held_against_itself(make: Make, monkeypatch: pytest.MonkeyPatch, writer: str) -> None:
    mill = make(writer=writer)
    mill.feed([an_event(1, "a")])
    mill.run()
    mill.feed([an_event(2, "b")])
    monkeypatch.setenv(VARIABLE, "after:published:rows=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    assert len(mill.published("rows")) == 2
    assert mill.run().attempt == 2
    assert [row["user"] for row in mill.published("rows")] == ["a", "b"]


@pytest.mark.parametrize("writer", WRITERS)
def test_a_backfill_is_compared_with_what_it_leaves_and_with_what_waits(make: Make, writer: str) -> None:
    mill = make(writer=writer, batch_records=1)
    for user in "abc":
        mill.feed([an_event(1, user)])
        mill.run()
    # Rows that it replaces are no reason to block it.
    type_at(mill, "backfill", "p", "--from-offsets", "events-0:0", "--to-offsets", "events-0:2")
    assert [row["user"] for row in mill.published("rows")] == ["a", "b", "c"]
    mill.feed([an_event(1, "a")])
    with pytest.raises(AuditBlocked):
        mill.run()
    type_at(mill, "audit", "accept", "p", "--why", "known")
    mill.run()
    assert [row["user"] for row in mill.published("rows")] == ["a", "a", "b", "c"]
    # The first record of the job waits, when its last one comes.
    again = ("backfill", "p", "--from-offsets", "events-0:0")
    said = type_command(mill.project.folder, *again, session=lambda _: mill.session)
    assert said.code != 0
    assert "primaryKey: 1 of 1 row" in said.err
    assert [row["user"] for row in mill.published("rows")] == ["a", "a", "b", "c"]
