"""Sessions on Spark: they merge across batches, and a published session that merges is taken back at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.projects import NOW, Mill, an_event, sums
from support.writers import WRITERS
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.core.time.panes import Window
from tidemill.core.time.sessions import merged
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.spark

GAP = {"window": 'Session("10 seconds")'}


def sessions(mill: Mill) -> dict[str, list[tuple[float, float, int]]]:
    """Start, end and number of records of the published sessions of each user."""
    found: dict[str, list[tuple[float, float, int]]] = {}
    for row in mill.published():
        start, end = ((row[c] - NOW).total_seconds() for c in ("window_start", "window_end"))
        found.setdefault(row["user"], []).append((start, end, row["n"]))
    return {user: sorted(each) for user, each in sorted(found.items())}


def checked(mill: Mill) -> None:
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(mill.published())), found.differences


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 9.999], [(0, 19.999, 2)]),
        ([0, 10], [(0, 20, 2)]),
        ([0, 10.001], [(0, 10, 1), (10.001, 20.001, 1)]),
        ([-10.001, -1, 5], [(-10.001, 15, 3)]),
    ],
)
def test_row_32_records_with_a_gap_of_at_most_ten_seconds_are_one_session(
    tmp_path: Path, spark: Any, times: list[float], expected: list[tuple[float, float, int]]
) -> None:
    mill = sums(tmp_path, spark, **GAP)
    mill.feed([*map(an_event, times), an_event(1000, "end")])
    mill.run()
    assert sessions(mill) == {"a": expected}


@pytest.mark.parametrize("trigger", ["on_close", "on_update"])
@pytest.mark.parametrize("writer", WRITERS)
def test_row_32_a_record_between_two_published_sessions_makes_them_one(
    tmp_path: Path, spark: Any, writer: str, trigger: str
) -> None:
    mill = sums(tmp_path, spark, **GAP, writer=writer, trigger=trigger, lateness="1 hour")
    mill.feed([an_event(0), an_event(15), an_event(1, "b"), an_event(60, "b")])
    mill.run()
    ended = {"a": [(0, 10, 1), (15, 25, 1)], "b": [(1, 11, 1)]}
    still = {} if trigger == "on_close" else {"b": [(1, 11, 1), (60, 70, 1)]}
    assert sessions(mill) == ended | still
    mill.feed([an_event(8)])
    mill.run()
    assert sessions(mill) == ended | still | {"a": [(0, 25, 3)]}
    checked(mill)


def test_a_published_session_that_goes_on_is_taken_back_until_it_closes_again(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, **GAP)
    mill.feed([an_event(0), an_event(10, "b")])
    mill.run()
    assert sessions(mill) == {"a": [(0, 10, 1)]}
    mill.feed([an_event(10)])
    mill.run()
    assert sessions(mill) == {}
    mill.feed([an_event(20, "b")])
    mill.run()
    assert sessions(mill) == {"a": [(0, 20, 2)]}
    checked(mill)


def expected(events: list[tuple[float, str]], until: float) -> dict[str, list[tuple[float, float, int]]]:
    """Sessions by the plain rule, those that end at `until` or earlier."""
    found = {}
    for user in sorted({user for _, user in events}):
        times = [round(time * 1000) for time, of in events if of == user]
        windows = merged(Window(t, t + 10_000) for t in times)
        rows = [(w.start / 1000, w.end / 1000, sum(t in w for t in times)) for w in windows if w.end <= until * 1000]
        found |= {user: rows} if rows else {}
    return found


@pytest.mark.parametrize("writer", WRITERS)
def test_sessions_do_not_depend_on_how_batches_cut_the_log_nor_on_what_is_done_to_it(
    tmp_path: Path, spark: Any, writer: str
) -> None:
    chance = random.Random(11)
    mill = sums(tmp_path, spark, **GAP, writer=writer, delay="40 s", lateness="1 minute")
    events = [(float(number) * 2 - chance.choice([0, 0, 3, 15, 39]), chance.choice("abcd")) for number in range(160)]
    for start in range(0, 160, 20):
        part = events[start : start + 20]
        mill.feed([an_event(time, user) for time, user in part] + [b"{cut"])
        mill.run()
        newest = max(time for time, _ in events[: start + 20])
        assert sessions(mill) == expected(events[: start + 20], newest - 40)
    assert mill.own("late") == []
    checked(mill)
    seen = mill.everything()
    assert list(fold(an_amendment(mill), Folding(group=4, overlap=0.1, groups=1)))
    mill.feed([an_event(500, "end")])
    mill.run()
    checked(mill)
    assert sessions(mill) == expected(events, 460)
    done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert sessions(mill) == expected(events, 460)
    done(rewind(an_amendment(mill), 8))
    assert mill.everything() == seen
    mill.run()
    assert sessions(mill) == expected(events, 460)


def test_late_records_that_are_admitted_join_their_sessions(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark, **GAP)
    mill.feed([an_event(0), an_event(15), an_event(100, "end")])
    mill.run()
    mill.feed([an_event(7), an_event(200, "end")])
    mill.run()
    assert sessions(mill) == {"a": [(0, 10, 1), (15, 25, 1)], "end": [(100, 110, 1)]}
    [late] = mill.own("late")
    assert [(late[c] - NOW).total_seconds() for c in ("window_start", "window_end")] == [7, 17]
    done(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert sessions(mill) == {"a": [(0, 25, 3)], "end": [(100, 110, 1)]}
    changes = {(r["window_start"] - NOW).total_seconds(): r["after"] for r in mill.own("corrections")}
    assert (changes.keys(), changes[15]) == ({0, 15}, "null")
    checked(mill)
