"""What `explain --window` says of windows that a backfill brought records to, and of keys that do not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from machine.conftest import an_amendment, ids, run
from support.commands import Said, type_command
from support.projects import Mill, an_event
from tidemill.core.exit_code import ExitCode
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.repair.selection import OfOffsets
from tidemill.repair.backfill import backfill

ALL = OfOffsets(since={TopicPartition("events", 0): 0}, until={})


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """Two batches. The record of second 5 came late, and its window had no other."""
    made = a_mill()
    made.feed([an_event(21, "north"), an_event(60)])
    made.run()
    made.feed([an_event(5, "north"), an_event(75)])
    made.run()
    return made


def explained(mill: Mill, second: int, key: str, *more: str) -> Said:
    return type_command(
        mill.project.folder,
        "explain",
        "sums",
        "--window",
        f"2026-01-01T00:{second // 60:02}:{second % 60:02}",
        "--key",
        key,
        *more,
    )


@pytest.mark.parametrize("most", [1, None])
def test_a_backfill_that_brought_the_first_record_of_a_window_is_its_firing(mill: Mill, most: int | None) -> None:
    last = ids(backfill(an_amendment(mill, most), ALL))[-1]
    shown = explained(mill, 0, "north", "--json").json
    assert shown["row"]["n"] == 1
    firings = [(p["batch_id"], p["timing"]) for p in shown["publications"]]
    assert [f for f in firings if f[1] == "BACKFILL"] == [(last, "BACKFILL")]


def test_a_backfill_is_no_firing_of_a_window_that_is_open(mill: Mill) -> None:
    mill.feed([an_event(78, "late")])
    run(mill)
    ids(backfill(an_amendment(mill), ALL))
    shown = explained(mill, 70, "late", "--json").json
    assert (shown["row"], shown["publications"]) == (None, [])


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_key_that_does_not_exist_has_no_firing_and_the_nearest_one_is_named(
    mill: Mill, more: tuple[str, ...]
) -> None:
    said = explained(mill, 20, "nort", *more)
    assert said.code == ExitCode.WRONG
    assert "ON_TIME" not in said.out
    assert "no record counts in the window of 2026-01-01 00:00:20 and the key user=nort" in said.err
    assert "did you mean user=north?" in said.err


def test_a_window_without_records_says_so(mill: Mill) -> None:
    said = explained(mill, 30, "north")
    assert (said.code, "published rows of this window: none" in said.err) == (ExitCode.WRONG, True)


def test_a_window_that_is_not_published_yet_is_explained(mill: Mill) -> None:
    mill.feed([an_event(78, "late")])
    run(mill)
    said = explained(mill, 70, "late")
    assert (said.code, "no row of this window and key" in said.out) == (ExitCode.DONE, True)


def test_a_time_inside_a_window_is_answered_with_its_start(mill: Mill) -> None:
    said = explained(mill, 23, "north")
    assert (said.code, "starts at 2026-01-01 00:00:20" in " ".join(said.err.split())) == (ExitCode.WRONG, True)
