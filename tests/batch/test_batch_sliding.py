"""Sliding windows of many panes on Spark: what is merged ahead gives what one computation over the log gives."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment
from support.projects import NOW, Mill, an_event, rows_of, sums
from tidemill.core.repair.state_compaction import Folding
from tidemill.engine.publish import window_results as windows
from tidemill.inspect.lines import not_compared
from tidemill.inspect.verify import Scope, verify
from tidemill.maintain.state_compaction import fold

pytestmark = pytest.mark.spark


def feed(mill: Mill, second: int, seconds: int, chance: random.Random) -> None:
    """Records of some seconds of three keys, some of them late."""
    times = [t - chance.choice([0, 0, 1, 4, 9, 30]) for t in range(second, second + seconds) for _ in range(3)]
    mill.feed([an_event(t, chance.choice(["a", "b", None]), chance.randrange(9)) for t in times])


BY_HALVES = {"window": 'Sliding("20 seconds", "1 second", offset="500 ms")'}
ON_UPDATE = {"window": 'Sliding("21 seconds", "2 seconds")', "trigger": "on_update"}


@pytest.mark.parametrize(
    ("declared", "at_once"),
    [
        (BY_HALVES, 10**9),
        (ON_UPDATE, 0),
        pytest.param({**BY_HALVES, "writer": "spark"}, 0, marks=pytest.mark.long),
        pytest.param({**ON_UPDATE, "writer": "spark"}, 10**9, marks=pytest.mark.long),
    ],
)
def test_windows_of_many_panes_are_what_the_log_gives(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, declared: dict[str, str], at_once: int
) -> None:
    monkeypatch.setattr(windows.Windows, "at_once", at_once)
    mill = sums(tmp_path, spark, delay="1 s", lateness="40 s", **declared)
    chance, second = random.Random(7), 0
    for seconds in (12, 1, 30, 2):
        feed(mill, second, seconds, chance)
        mill.run()
        second += seconds
    list(fold(an_amendment(mill), Folding(group=2, overlap=1.0, groups=1)))
    feed(mill, second, 5, chance)
    mill.run()
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared > 50) == (0, True)
    levels = {row["pane_level"] for row in rows_of(mill.project.table_uri("sums", "merged", "sums"))}
    assert levels == {1, 2, 3, 4}


def test_windows_that_lack_a_record_of_later_ones_are_left_out_of_the_proof_and_named(
    tmp_path: Path, spark: Any
) -> None:
    mill = sums(tmp_path, spark, delay="1 s", window='Sliding("20 seconds", "1 second")')
    mill.feed([an_event(second, "a") for second in range(31)])
    mill.run()
    mill.feed([an_event(25, "a"), an_event(60, "a")])
    mill.run()
    rows = {round(row["window_start"].timestamp() - NOW.timestamp()): row["n"] for row in mill.published()}
    assert [rows[start] for start in (5, 6, 9, 10, 11)] == [20, 20, 20, 21, 21]
    [found] = verify(an_amendment(mill), Scope())
    assert (found.differences.count, found.differences.compared) == (0, len(rows) - 4)
    said = "windows that start from 2026-01-01 00:00:06 to 2026-01-01 00:00:09: a record came when "
    assert not_compared(found).startswith(said)
