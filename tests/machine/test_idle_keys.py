"""Buffers that forget idle keys, through the whole protocol: killed anywhere, folded, rewound, computed again."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.told import USERS, Told, disturbed, places_of, shown
from support.firings import firings
from support.ordered import Record
from support.ordered_oracle import buffered
from support.projects import NO_SPARK, Mill, an_event, rows_of
from support.short_forms import shortened
from tidemill import CountPolicy, SlidingBuffer, TumblingBuffer
from tidemill.core.errors import DeclarationError, Incompatible
from tidemill.core.plan.amendments import Reason
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.state_compaction import Folding
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.run.histories import plan_of

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

ALL, BEGIN = OfOffsets(since={}, until={}), datetime.now(UTC)
BUFFERS = {
    "TumblingBuffer(CountPolicy(3), idle_timeout='90 seconds')": TumblingBuffer(CountPolicy(3)),
    "SlidingBuffer(CountPolicy(4), CountPolicy(2), '90 seconds')": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
}


def expected(told: Told, declared: Any) -> list[tuple[str, int, int | None]]:
    """What a buffer gives for each stretch of a user's records whose batches are at most 90 seconds apart."""
    found, ledger, first = [], told.mill.project.ledger(told.mill.name), 0
    stretches: dict[str, list[list[int]]] = {user: [] for user in USERS}
    used: dict[str, datetime] = {}
    for number, last in sorted(told.known.items()):
        clock = plan_of(ledger, number).clock
        for _, user, amount in told.order[first:last]:
            if user not in used or clock - used[user] > timedelta(seconds=90):
                stretches[user].append([])
            used[user] = clock
            stretches[user][-1].append(amount)
        first = last
    for user, parts in stretches.items():
        for part in parts:
            for fires in buffered(declared, [Record(value=amount) for amount in part]):
                found.append((user, len(fires), sum(part[i] for i in fires)))
    return sorted(found, key=str)


@pytest.mark.parametrize("seed", shortened(range(6), [0]))
@pytest.mark.parametrize("text", BUFFERS)
def test_firings_are_those_of_the_plain_rule_whatever_is_done_to_the_batches(
    tmp_path: Path, text: str, seed: int
) -> None:
    mill, draw = firings(tmp_path, NO_SPARK, text, collect=False, partitions=2), random.Random(f"{text}{seed}")
    places, told = places_of(mill), Told(mill, clock=BEGIN)
    for _ in range(9):
        told.clock += timedelta(seconds=draw.choice([10, 30, 90, 91, 200]))
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, BUFFERS[text])


def run_at(mill: Mill, second: int) -> Any:
    return mill.run(clock=BEGIN + timedelta(seconds=second))


def test_state_of_forgotten_keys_goes_and_a_backfill_forgets_them_at_the_same_moments(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2), idle_timeout='61 s')", collect=False)
    for second, user in ((0, "a"), (30, "b"), (61, "c"), (91, "a"), (92, "b"), (93, "c")):
        mill.feed([an_event(second, user, second)])
        run_at(mill, second)
    # "a" was forgotten between its records; those of "b" are 62 seconds apart, those of "c" 32.
    assert shown(mill) == [("c", 2, 61 + 93)]
    first = shown(mill)
    done(backfill(an_amendment(mill), ALL))
    assert shown(mill) == first
    mill.feed([an_event(200, "d", 1)])
    run_at(mill, 500)
    list(fold(an_amendment(mill), Folding(group=1, overlap=0.1, groups=1)))
    rows = rows_of(mill.project.table_uri(mill.name, "state/firings"))
    last = [row for row in rows if row["batch_id"] == max(r["batch_id"] for r in rows) and row["piece_id"] is None]
    assert {row["user"]: row["key_state"] is not None for row in last} == {"a": False, "b": False, "d": True}


def test_a_timeout_that_is_declared_later_is_another_meaning_and_keys_go_on(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2))", collect=False)
    mill.feed([an_event(0, "a", 1)])
    run_at(mill, 0)
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("CountPolicy(2)", "CountPolicy(2), idle_timeout='61 s'"))
    mill = Mill(type(mill.project).load(tmp_path), NO_SPARK, "firings")
    mill.feed([an_event(500, "a", 2)])
    with pytest.raises(Incompatible, match="idle timeout"):
        run_at(mill, 500)
    mill.run(clock=BEGIN + timedelta(seconds=500), from_now=Reason(by="ana", why="too many keys"))
    assert shown(mill) == [("a", 2, 3)]


@pytest.mark.parametrize("before", ["", ", idle_timeout='30 days'"])
def test_a_timeout_that_is_declared_later_forgets_the_keys_that_never_come_back(tmp_path: Path, before: str) -> None:
    window = f"TumblingBuffer(CountPolicy(2){before})"
    mill = firings(tmp_path, NO_SPARK, window, collect=False)
    mill.feed([an_event(0, "old", 1)])
    run_at(mill, 0)
    path = tmp_path / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace(window, "TumblingBuffer(CountPolicy(2), idle_timeout='2 minutes')"))
    mill = Mill(type(mill.project).load(tmp_path), NO_SPARK, "firings")
    for second, user in ((500, "a"), (560, "b"), (630, "c"), (690, "old")):
        mill.feed([an_event(second, user, 1)])
        mill.run(clock=BEGIN + timedelta(seconds=second), from_now=Reason(by="ana", why="too many keys"))
    assert shown(mill) == []


def test_a_timeout_shorter_than_the_schedule_is_refused(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2), idle_timeout='1 minute')", collect=False)
    with pytest.raises(DeclarationError, match="not longer than the time from one batch to the next, 1 minute"):
        mill.project.pipeline("firings")
