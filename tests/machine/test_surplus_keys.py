"""Buffers that forget surplus keys, through the whole protocol: killed anywhere, folded, rewound, computed again."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.told import Told, disturbed, places_of, shown
from support.firings import changed, firings
from support.ordered import Record
from support.ordered_oracle import buffered
from support.projects import NO_SPARK, Mill, an_event
from support.short_forms import shortened
from tidemill import CountPolicy, SlidingBuffer, TumblingBuffer
from tidemill.core.errors import AmendmentError, DeclarationError, Incompatible, NothingRead
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.core.repair.selection import OfOffsets
from tidemill.engine.publish.firings import Firings
from tidemill.repair.backfill import backfill

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BUFFERS = {
    "TumblingBuffer(CountPolicy(3), most_keys=MOST)": TumblingBuffer(CountPolicy(3)),
    "SlidingBuffer(CountPolicy(4), CountPolicy(2), most_keys=MOST)": SlidingBuffer(CountPolicy(4), CountPolicy(2)),
}


def expected(told: Told, declared: Any, most: int) -> list[tuple[str, int, int | None]]:
    """What a buffer gives for each stretch of a user's records after which the user was not forgotten."""
    done_with, now, used, first = list[tuple[str, list[int]]](), dict[str, list[int]](), dict[str, int](), 0
    for _, last in sorted(told.known.items()):
        for number, (_, user, amount) in enumerate(told.order[first:last], first):
            now.setdefault(user, []).append(amount)
            used[user] = number
        keeping = [user for user, part in now.items() if isinstance(declared, SlidingBuffer) or len(part) % 3]
        for user in sorted(keeping, key=used.__getitem__)[: max(0, len(keeping) - most)]:
            done_with.append((user, now.pop(user)))
        first = last
    found = []
    for user, part in [*done_with, *now.items()]:
        for fires in buffered(declared, [Record(value=amount) for amount in part]):
            found.append((user, len(fires), sum(part[i] for i in fires)))
    return sorted(found, key=str)


@pytest.mark.parametrize("seed", shortened(range(8), [0]))
@pytest.mark.parametrize("most", shortened([1, 2], [2]))
@pytest.mark.parametrize("text", BUFFERS)
def test_firings_are_those_of_the_plain_rule_whatever_is_done_to_the_batches(
    tmp_path: Path, text: str, most: int, seed: int
) -> None:
    window = text.replace("MOST", str(most))
    mill, draw = firings(tmp_path, NO_SPARK, window, collect=False, partitions=2), random.Random(f"{text}{most}{seed}")
    places, told = places_of(mill), Told(mill, clock=BEGIN)
    for _ in range(9):
        told.feed(draw)
        disturbed(told, draw, places, told.run)
        told.run()
        assert shown(mill) == expected(told, BUFFERS[text], most)
        if told.known and draw.random() < 0.3:
            since = {TopicPartition("events", draw.randint(0, 1)): draw.randint(0, len(told.order) // 2)}
            with suppress(AmendmentError, NothingRead):
                done(backfill(an_amendment(mill), OfOffsets(since=since, until={})))
            assert shown(mill) == expected(told, BUFFERS[text], most)


def two(folder: Path, window: str = "TumblingBuffer(CountPolicy(2), most_keys=2)") -> Mill:
    return firings(folder, NO_SPARK, window, collect=False)


def feed(mill: Mill, users: str, **more: Any) -> Any:
    mill.feed([an_event(1, user, 1) for user in users])
    return mill.run(**more)


def test_the_key_whose_last_record_came_first_is_forgotten_after_the_batch(tmp_path: Path) -> None:
    mill = two(tmp_path)
    feed(mill, "abc")
    # "a" was forgotten; within the batch there may be more keys, and what is full has fired.
    feed(mill, "ab")
    assert shown(mill) == [("b", 2, 2)]
    feed(mill, "ca")
    assert shown(mill) == [("a", 2, 2), ("b", 2, 2), ("c", 2, 2)]
    feed(mill, "abcdd")
    assert shown(mill) == [("a", 2, 2), ("b", 2, 2), ("c", 2, 2), ("d", 2, 2)]
    feed(mill, "abc")
    assert [row for row in shown(mill) if row[0] == "a"] == [("a", 2, 2)]


def test_keys_of_one_record_each_are_no_more_than_that_in_state(tmp_path: Path, much_state: None) -> None:
    mill = two(tmp_path)
    for number in range(8):
        feed(mill, "abcdefghij"[number : number + 3])
    states = {row["user"]: row for row in sorted(mill.own("state/firings"), key=lambda r: r["key_as_of"] or 0)}
    assert sum(row["key_state"] is not None for row in states.values()) == 2


def test_a_bound_that_is_declared_later_is_another_meaning_and_first_forgets_keys_of_before(tmp_path: Path) -> None:
    mill = two(tmp_path, "TumblingBuffer(CountPolicy(2))")
    feed(mill, "dacb")
    mill = changed(mill, "CountPolicy(2)", "CountPolicy(2), most_keys=3")
    with pytest.raises(Incompatible, match="most keys"):
        feed(mill, "e")
    mill.run(from_now=Reason(by="ana", why="too many keys"))
    # Nobody noted when the last records of "a" to "d" came, so these go first, in their order.
    feed(mill, "abcd")
    feed(mill, "bd")
    first = shown(mill)
    assert first == [("b", 2, 2), ("c", 2, 2), ("d", 2, 2)]
    done(backfill(an_amendment(mill), OfOffsets(since={TopicPartition("events", 0): 4}, until={})))
    assert shown(mill) == first


@pytest.mark.parametrize(
    ("window", "problem"),
    [
        ("TumblingBuffer(CountPolicy(2), most_keys=0)", "most_keys is a whole number from 1 to 10,000,000, found 0"),
        ("TumblingBuffer(CountPolicy(2), most_keys=True)", "found True"),
        ("SlidingBuffer(CountPolicy(2), most_keys='many')", "found 'many'"),
        ("SlidingBuffer(CountPolicy(2), most_keys=10_000_001)", "found 10000001"),
        ("TumblingBuffer(CountPolicy(1), most_keys=5)", "no key keeps anything in a buffer by count 1"),
    ],
)
def test_what_is_no_bound_is_refused(tmp_path: Path, window: str, problem: str) -> None:
    mill = firings(tmp_path, NO_SPARK, window, collect=False)
    with pytest.raises(DeclarationError, match=problem):
        mill.project.pipeline("firings")


def test_records_without_a_key_have_no_surplus(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(2), most_keys=2)", collect=False, keyed=False)
    with pytest.raises(DeclarationError, match="all records have the same key"):
        mill.project.pipeline("firings")


def test_explain_tells_the_bound() -> None:
    assert str(TumblingBuffer(CountPolicy(2), most_keys=5_000)).endswith(", of 5,000 keys at most")


KINDS = {
    "TumblingBuffer(CountPolicy(3), idle_timeout='90 seconds', most_keys=2)": False,
    "SlidingBuffer(CountPolicy(4), CountPolicy(2), idle_timeout='90 seconds', most_keys=2)": False,
    "TumblingBuffer(TimePolicy('1 minute', clock='batch_clock'), emit_empty=True, most_keys=2)": True,
    "TumblingBuffer(TimePolicy('10 s'), most_keys=2)": True,
    "TumblingBuffer(TimePolicy('10 s'), emit_empty=True, most_keys=1)": True,
    "TumblingBuffer(PunctuationPolicy('marker'), most_keys=2)": False,
    "TumblingBuffer(DeltaPolicy('amount', 4), most_keys=2)": False,
    "SlidingBuffer(TimePolicy('1 minute', clock='batch_clock'), CountPolicy(2), most_keys=2)": False,
    "SlidingBuffer(CountPolicy(3), TimePolicy('1 minute', clock='batch_clock'), most_keys=2)": False,
}
"""Buffers, and whether they have windows of time."""


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[list[dict[str, Any]]]:
    """What all keys keep after each batch that folds."""
    found = list[list[dict[str, Any]]]()
    note = Firings._note

    def noted(self: Firings, sink: Any, keys: Any, parts: Any) -> None:
        rows = keys.everything().drop_columns("key_as_of").to_pylist()
        found.append(sorted(({**row, "_kept": without_lost(row["_kept"])} for row in rows), key=lambda r: r["user"]))
        note(self, sink, keys, parts)

    monkeypatch.setattr(Firings, "_note", noted)
    return found


def without_lost(text: str) -> dict[str, Any]:
    return {name: part for name, part in json.loads(text).items() if name != "lost"}


def rows_without_batch(mill: Mill) -> list[str]:
    left_out = {"batch_id", "published_at"}
    return sorted(str({c: v for c, v in row.items() if c not in left_out}) for row in mill.published())


@pytest.mark.parametrize("seed", shortened(range(6), [0]))
@pytest.mark.parametrize("window", KINDS)
def test_a_backfill_leaves_the_same_rows_and_the_same_state_to_the_place_of_the_last_record(
    tmp_path: Path, window: str, seed: int, kept: list[list[dict[str, Any]]]
) -> None:
    settings = {"collect": False, "partitions": 2, "bounds": KINDS[window], "delay": "3 s"}
    mill, draw = firings(tmp_path, NO_SPARK, window, **settings), random.Random(f"{window}{seed}")
    clock, second = BEGIN, 0
    for _ in range(10):
        for _ in range(draw.randint(0, 7)):
            second += draw.randint(0, 6)
            event = an_event(second + draw.randint(-5, 0), draw.choice("abcde"), draw.choice([-1, 1, 2, 3, 5, 8]))
            mill.feed([event], partition=draw.randint(0, 1))
        clock += timedelta(seconds=draw.choice([5, 30, 60, 61, 120, 200, -20]))
        mill.run(clock=clock)
    first, state = rows_without_batch(mill), kept[-1]
    assert len(state) <= 2
    since = {TopicPartition("events", 0): draw.randint(0, 6)} if seed % 2 else {}
    done(backfill(an_amendment(mill), OfOffsets(since=since, until={})))
    assert (rows_without_batch(mill), kept[-1]) == (first, state)
