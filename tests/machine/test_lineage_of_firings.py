"""Where the rows of a table of firings come from, on the tiny engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from machine.failing import failing
from support.commands import type_command
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event
from tidemill.core.exit_code import ExitCode
from tidemill.core.repair.selection import OfOffsets
from tidemill.repair.backfill import backfill
from tidemill.repair.rewind import rewind

pytestmark = pytest.mark.usefixtures("tiny")

EARLY = 'trigger=AfterWatermark(early=AfterCount(2)), accumulation="accumulating_and_retracting", '
TOLD = 'timing="timing", index="nth", operation="operation"'


def told(mill: Mill, *words: str) -> dict[str, Any]:
    said = type_command(mill.project.folder, "explain", "firings", *words, "--json")
    assert said.code == ExitCode.DONE, said
    found: dict[str, Any] = json.loads(said.out)
    return found


def slices(found: dict[str, Any]) -> list[tuple[int, list[str], bool]]:
    return [(each["batch_id"], each["ranges"], each["counts"]) for each in found["slices"]]


def published(found: dict[str, Any]) -> list[tuple[int, str]]:
    return [(each["batch_id"], each["timing"]) for each in found["publications"]]


@pytest.fixture
def buffers(tmp_path: Path, much_state: None) -> Mill:
    """Four batches of a buffer of three records: "a" has records in all but the second, and fires in the last."""
    mill = firings(tmp_path, NO_SPARK, "TumblingBuffer(CountPolicy(3))", collect=False)
    for number, users in enumerate(["ab", "b", "a", "ab"]):
        mill.feed([an_event(number, user, number + 1) for user in users])
        mill.run()
    return mill


def test_a_key_tells_the_batches_that_brought_its_records_and_those_that_fired(buffers: Mill) -> None:
    found = told(buffers, "--key", "a")
    read = [(1, ["events-0 [0, 2)"], True), (3, ["events-0 [3, 4)"], True), (4, ["events-0 [4, 6)"], True)]
    assert slices(found) == read
    assert published(found) == [(4, "FIRING")]
    assert (found["row"]["n"], found["row"]["amount"], found["window_start"]) == (3, 1 + 3 + 4, None)
    shown = type_command(buffers.project.folder, "explain", "firings", "--key", "a").out
    assert "events-0 [3, 4)" in shown
    assert "n=3, amount=8" in shown


def test_after_a_rewind_and_a_backfill_it_tells_what_counts_now(buffers: Mill) -> None:
    done(rewind(an_amendment(buffers), 3))
    found = told(buffers, "--key", "a")
    assert [batch_id for batch_id, _, counts in slices(found) if counts] == [1, 3]
    assert (published(found), found["row"]) == ([], None)
    buffers.run()
    done(backfill(an_amendment(buffers), OfOffsets(since={}, until={})))
    found = told(buffers, "--key", "a")
    # The key keeps nothing, so only the batch that fired tells what was read.
    assert [(at, ranges) for at, ranges, counts in slices(found) if counts] == [(7, ["events-0 [0, 6)"])]
    assert published(found) == [(7, "FIRING")]


def test_a_window_tells_its_firings_by_their_timing(tmp_path: Path) -> None:
    mill = firings(tmp_path, NO_SPARK, "Tumbling('10 s')", trigger=EARLY + TOLD, bounds=True, collect=False)
    for seconds in ([1, 2], [3, 25], [26, 27]):
        mill.feed([an_event(second, "a", second) for second in seconds])
        mill.run()
    found = told(mill, "--window", "2026-01-01T00:00:00", "--key", "a")
    assert published(found) == [(1, "EARLY"), (2, "ON_TIME")]
    assert (found["row"]["n"], found["row"]["operation"], found["window_end"][17:19]) == (3, "insert", "10")
    assert [at for at, _ in published(told(mill, "--key", "a"))] == [1, 2, 3]


@pytest.mark.parametrize("window", ["TumblingBuffer(CountPolicy(2))", "Tumbling('10 s')"])
def test_rows_of_an_open_batch_are_told_before_it_commits(tmp_path: Path, much_state: None, window: str) -> None:
    more = {"trigger": EARLY + TOLD, "bounds": True} if "Buffer" not in window else {}
    mill = firings(tmp_path, NO_SPARK, window, collect=False, **more)
    for number in (1, 2):
        mill.feed([an_event(2 * number, "a", 1), an_event(2 * number + 1, "a", 1)])
        with failing("before:committed@2=raise"):
            mill.run()
    found = told(mill, "--key", "a")
    assert [batch for batch, _ in published(found)] == [1]
    assert found["row"]["batch_id"] == 2
    assert [counts for batch, _, counts in slices(found) if batch == 2] in ([], [False])
    mill.run()
    assert [batch for batch, _ in published(told(mill, "--key", "a"))] == [1, 2]


def test_what_is_not_there_is_refused_by_name(buffers: Mill) -> None:
    folder = buffers.project.folder
    for words, problem in (
        (("--key", "z"), "no record counts under the key user=z; published rows: user=a, user=b"),
        (("--key", "a", "--window", "2026-01-01T00:00"), "have no start"),
        (("--key", "a", "--table", "nope"), "'nope' has no windows fix: --table is one of firings"),
    ):
        said = type_command(folder, "explain", "firings", *words)
        assert said.code == ExitCode.WRONG
        assert problem in " ".join(said.err.split()), said.err
