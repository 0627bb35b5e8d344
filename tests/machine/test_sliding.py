"""Sliding windows whose panes are merged ahead, through everything that can happen, against sums over the log."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from machine.conftest import again, an_amendment, run
from support.projects import NOW, Mill, an_event, rows_of
from support.recovery import paused
from tidemill.core.errors import EngineError, Fenced, TableDamaged
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.core.time import pane_tree
from tidemill.core.time.times import micros
from tidemill.engine.publish import window_results as windows
from tidemill.engine.storage.state_table import State
from tidemill.maintain import maintenance
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run import batch

SIZE = 16
# No window refuses a record that others take: records are late for all of them, or for none.
SLIDING = {"window": f'Sliding("{SIZE} seconds", "1 second")', "lateness": f"{SIZE} s", "delay": "2 s"}
FAR = 4 * SIZE
EASY = Folding(group=4, overlap=1.0, groups=1)


class Feed:
    """Feeds a mill a second of event time a batch, and knows what its windows are."""

    def __init__(self, mill: Mill, seed: int = 0) -> None:
        self.mill, self.second, self.random = mill, 0, random.Random(seed)
        self.events: list[tuple[int, str, int]] = []

    def batch(self, seconds: int = 1, *, run: Callable[[Mill], Any] = run) -> Any:
        """Two records for each of some seconds, some of them late, then a batch."""
        self.give(seconds)
        return run(self.mill)

    def give(self, seconds: int) -> None:
        """The records alone."""
        rows, closed = [], self.closed()
        for second in range(self.second, self.second + seconds):
            early = self.random.choice(
                [0, 0, 0, 1, 3, 8, 13, *([FAR] if 0 <= second - FAR <= closed - 2 * SIZE else [])]
            )
            rows += [(second, "a", self.random.randrange(9)), (max(second - early, 0), "b", self.random.randrange(9))]
        self.second += seconds
        self.mill.feed([an_event(*row) for row in rows])
        self.events += rows

    def closed(self) -> float:
        """The watermark, in seconds of the test."""
        watermark = again(self.mill).project.ledger("sums").view().position.watermark
        return (watermark - micros(NOW)) / 1_000_000

    def expected(self, late: Counter[tuple[int, str, int]]) -> dict[tuple[int, str], tuple[int, int]]:
        """Every window that is closed, by its first second, of all records but the late ones."""
        closed = self.closed()
        found: dict[tuple[int, str], tuple[int, int]] = {}
        for second, user, amount in (Counter(self.events) - late).elements():
            for start in range(second - SIZE + 1, second + 1):
                if start + SIZE <= closed:
                    n, total = found.get((start, user), (0, 0))
                    found[start, user] = (n + 1, total + amount)
        return found

    def check(self) -> None:
        """Published are exactly these windows."""
        offsets = Counter(row["offset"] for row in self.mill.own("late"))
        late = Counter(event for offset, event in enumerate(self.events) if offset in offsets)
        found = {
            (round((row["window_start"] - NOW).total_seconds()), row["user"]): (row["n"], row["amount"])
            for row in self.mill.published()
        }
        assert found == self.expected(late)


@pytest.fixture
def feed(a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch) -> Feed:
    """A pipeline of sixteen seconds by a second, which nobody audits."""
    monkeypatch.setattr(batch, "audit", lambda *_: [])
    return Feed(a_mill(**SLIDING))


def test_every_batch_reads_a_logarithm_of_the_panes(
    a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "audit", lambda *_: [])
    mill, read, rows_of_state = a_mill(window='Sliding("64 seconds", "1 second")'), [0], State.read

    def counted(state: State, *args: Any) -> Any:
        rows = rows_of_state(state, *args)
        read[-1] += sum(map(len, rows)) if isinstance(rows, list) else len(rows)
        return rows

    monkeypatch.setattr(State, "read", counted)
    for second in range(80):
        read.append(0)
        mill.feed([an_event(second, user) for user in "abc"])
        if second % 8 == 7 or second > 70:
            run(mill)
    assert max(row["n"] for row in mill.published()) == 64
    # Of three keys; all panes of the window that closes would be 189.
    assert max(read[-8:]) <= 3 * 2 * 6


@pytest.mark.parametrize("at_once", [0, 10**9])
def test_many_windows_at_once_are_merged_like_one_by_one(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(windows.Windows, "at_once", at_once)
    for seconds in (10, 1, 30, 1, 0, 100, 1):
        feed.batch(seconds)
    feed.check()
    feed.batch(3, run=lambda mill: run(mill, drain=True))
    feed.check()


def test_a_batch_that_closes_nothing_takes_records_behind_the_watermark(
    a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "audit", lambda *_: [])
    mill = a_mill(**{**SLIDING, "lateness": "0 s"})
    for seconds in (range(SIZE), [10], range(SIZE, 3 * SIZE)):
        mill.feed([an_event(second, "a", 1) for second in seconds])
        run(mill)
    counts = {round((row["window_end"] - NOW).total_seconds()): row["n"] for row in mill.published()}
    # The watermark stood at 13; the record of second 10 counts in the windows that ended later.
    assert {end: counts[end] for end in (13, 14, 26, 27)} == {13: 13, 14: 15, 26: SIZE + 1, 27: SIZE}


def test_nodes_are_right_after_every_way_back(feed: Feed) -> None:
    amendment, topic = (lambda: an_amendment(feed.mill)), TopicPartition("events", 0)
    feed.batch(FAR)
    for _ in range(9):
        feed.batch(3)
    list(fold(amendment(), EASY))
    feed.batch(2)
    feed.check()
    assert feed.mill.own("late")
    list(repair(amendment(), SideOutput.LATE, Selection(table="sums")))
    assert not feed.mill.own("late")
    feed.check()
    list(backfill(amendment(), OfOffsets(since={topic: 2 * FAR + 20}, until={topic: 2 * FAR + 30})))
    feed.check()
    for _ in range(SIZE // 2 + 2):
        feed.batch(2)
    feed.check()
    before, batch = feed.mill.published(), feed.mill.project.ledger("sums").view().position.batch_id
    for _ in range(3):
        feed.batch(1)
    list(rewind(amendment(), batch))
    assert feed.mill.published() == before
    run(feed.mill)
    feed.check()
    list(maintain(feed.mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC)))
    for _ in range(4):
        feed.batch(3)
    feed.check()


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_attempt_that_dies_beside_its_nodes_leaves_nothing_that_counts(
    feed: Feed, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    feed.batch(FAR)
    for _ in range(3):
        feed.give(2)
        with monkeypatch.context() as patch:
            patch.setenv("TIDEMILL_FAILPOINT", f"{side}:merged:sums=raise")
            with pytest.raises(EngineError, match="failpoint"):
                run(feed.mill)
        run(feed.mill)
    for _ in range(4):
        feed.batch(4)
    feed.check()


def test_a_zombie_cannot_write_nodes(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed.batch(FAR)
    feed.give(2)
    with monkeypatch.context() as patch:
        happened = paused(patch, "before:merged:sums", lambda: run(feed.mill))
        with pytest.raises(Fenced):
            run(feed.mill)
    assert happened
    for _ in range(4):
        feed.batch(4)
    feed.check()


def test_state_of_before_goes_on_without_nodes(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    def since() -> Any:
        return feed.mill.project.ledger("sums").view().position.merged_since

    with monkeypatch.context() as patch:
        patch.setattr(pane_tree, "LEAST_OVERLAP", 10_000)
        for _ in range(3):
            feed.batch(10)
    assert since() is None
    for _ in range(9):
        feed.batch(2)
        feed.check()
    assert since() == {"sums": micros(NOW) + 27_000_000}
    assert rows_of(feed.mill.project.table_uri("sums", "merged", "sums"))


def test_lost_nodes_are_told_before_anything_is_merged_without_them(feed: Feed) -> None:
    feed.batch(10)
    feed.batch(10)
    shutil.rmtree(feed.mill.project.table_uri("sums", "merged", "sums"))
    feed.give(2)
    with pytest.raises(TableDamaged, match=r"merged panes of sums.*gone"):
        run(feed.mill)


def test_nodes_that_nobody_looks_at_any_more_are_removed(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 2)
    for _ in range(12):
        feed.batch(SIZE)
    rows = len(rows_of(feed.mill.project.table_uri("sums", "merged", "sums")))
    list(maintain(feed.mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC)))
    assert len(rows_of(feed.mill.project.table_uri("sums", "merged", "sums"))) < rows / 2
    for _ in range(3):
        feed.batch(5)
    feed.check()
