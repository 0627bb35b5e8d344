"""Whatever bytes a record has, it ends in exactly one place of the account, and no batch fails."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from support.projects import an_event, sums
from tidemill.core.protocol.account import Account

pytestmark = pytest.mark.spark

NASTY: dict[str, bytes | None] = {
    "tombstone": None,
    "empty value": b"",
    "cut JSON": b'{"ts": "2026-01-01T00:00:01Z", "user": "a"',
    "bad UTF-8": b'{"ts": "2026-01-01T00:00:01Z", "user": "\xff\xfe"}',
    "NaN": b'{"ts": "2026-01-01T00:00:01Z", "user": "a", "amount": NaN}',
    "a number beyond 64 bits": b'{"ts": "2026-01-01T00:00:01Z", "amount": 9223372036854775808}',
    "a huge exponent": b'{"ts": "2026-01-01T00:00:01Z", "amount": 1e400}',
    "a fraction for an integer": b'{"ts": "2026-01-01T00:00:01Z", "amount": 1.5}',
    "10 MB that are no JSON": b"x" * 10_000_000,
    "10 MB of deep nesting": b"[" * 10_000_000,
    "no event time": b'{"user": "a"}',
    "a null event time": b'{"ts": null}',
    "an impossible date": b'{"ts": "2026-02-30T00:00:00Z"}',
    "a year beyond the calendar": b'{"ts": "99999-01-01T00:00:00Z"}',
    "an array": b"[1, 2]",
    "two objects": an_event(1) + an_event(2),
    "half of an object that the next completes": b'{"ts": "2026-01-01T00:00:01Z"',
    "the other half": b', "user": "a", "amount": 1}',
    "a lone surrogate": b'{"ts": "2026-01-01T00:00:01Z", "user": "\\ud800"}',
    "NUL bytes": b"\x00\x00",
}
TAKEN: dict[str, bytes] = {
    "10 MB in one field": an_event(1, "a" * 10_000_000),
    "a field that the contract does not name": an_event(1, extra=[1, {"x": None}]),
    "the least and the greatest number": an_event(1, amount=-(2**63)),
    "a text with a NUL": an_event(1, "\x00"),
}


def test_every_nasty_record_is_rejected_with_a_reason_and_no_batch_fails(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([*NASTY.values(), *TAKEN.values(), an_event(1)])
    (commit,) = mill.catch_up()
    account = commit.accounts["events"]
    assert (account.read, account.rejected) == (len(NASTY) + len(TAKEN) + 1, len(NASTY))
    assert account.aggregated == len(TAKEN) + 1
    quarantine = {row["offset"]: row for row in mill.own("quarantine")}
    assert set(quarantine) == set(range(len(NASTY)))
    for offset, (name, value) in enumerate(NASTY.items()):
        assert quarantine[offset]["value"] == value, name
        assert all(0 < len(reason) <= 400 for reason in quarantine[offset]["reasons"]), name


EARLY = [
    "0001-01-01T00:00:00+14:00",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00.000001Z",
    "0001-01-01T00:00:59.999999Z",
    "0001-01-01T00:01:00Z",
    "0001-01-01T00:01:30Z",
    "0001-01-01T00:02:00Z",
    "0001-01-01T00:01:00Z",
    "0001-01-02T00:00:00Z",
    "0001-01-03T00:01:08Z",
    "0001-01-03T00:01:07.999999Z",
    "0001-12-31T23:59:59Z",
    "2026-01-01T00:00:01Z",
    "0001-01-03T00:01:08Z",
]


@pytest.mark.parametrize(
    ("window", "trigger"),
    [
        ('Tumbling("10 seconds")', "on_close"),
        pytest.param('Sliding("10 seconds", "4 seconds")', "on_update", marks=pytest.mark.long),
        pytest.param('Tumbling("1 day")', "on_close", marks=pytest.mark.long),
    ],
)
def test_event_times_of_year_one_fail_no_batch(tmp_path: Path, spark: Any, window: str, trigger: str) -> None:
    mill = sums(tmp_path, spark, window=window, delay="1 minute", lateness="8 s", trigger=trigger, partitions=2)
    values = [b'{"ts": "%s", "user": "a", "amount": 1}' % time.encode() for time in EARLY]
    mill.feed(values)
    mill.feed(values[1:], partition=1)
    commits = mill.catch_up(limit=4)
    assert len(commits) == 7
    total = sum((c.accounts["events"] for c in commits), Account())
    rejected, late = ({(r["partition"], r["offset"]) for r in mill.own(table)} for table in ("quarantine", "late"))
    assert not rejected & late
    assert {(0, 0), (0, 1), (1, 0)} <= rejected
    assert {(0, 13), (1, 12)} <= late
    assert (total.read, total.rejected, total.late) == (27, len(rejected), len(late))
    assert total.balances
    if trigger == "on_close":
        assert sum(r["n"] for r in mill.published()) == total.aggregated


def test_fields_that_the_contract_does_not_name_are_rejected_when_it_says_so(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, extra="reject")
    mill.feed([an_event(1), an_event(1, more=1)])
    (commit,) = mill.catch_up()
    assert commit.accounts["events"].rejected == 1
    assert "more" in mill.own("quarantine")[0]["reasons"][0]


def test_mutated_records_always_balance(tmp_path: Path, spark: Any) -> None:
    chance = random.Random(7)
    mill = sums(tmp_path, spark)
    values = []
    for number in range(3_000):
        value = bytearray(an_event(number % 50, chance.choice(["a", "b", None]), chance.randint(-5, 5)))
        for _ in range(chance.randint(0, 3)):
            value[chance.randrange(len(value))] = chance.randrange(256)
        values.append(bytes(value[: chance.randint(1, len(value))]) if chance.random() < 0.2 else bytes(value))
    mill.feed(values)
    commits = mill.catch_up(limit=1_000)
    total = sum((c.accounts["events"] for c in commits[1:]), commits[0].accounts["events"])
    assert total.read == 3_000
    assert total.balances
    assert total.rejected == len(mill.own("quarantine")) > 500
    assert total.aggregated == sum(r["n"] for r in mill.published())
    assert total.late == len(mill.own("late"))
