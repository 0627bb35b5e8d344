"""What people are told of state that was removed: by maintenance, status, explain, history, and who goes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from machine.holder import NO_SPARK
from support.commands import type_command
from support.projects import Mill, an_event
from tidemill.maintain import maintenance


@pytest.fixture
def folder(a_mill: Callable[..., Mill], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Windows of 10 s up to the watermark 100, of which those that end by 80 can be forgotten; offset 3 is late."""
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)
    made = a_mill(maintenance={"state": "10 s"})
    mill = Mill(made.project, NO_SPARK, "sums")
    for seconds in ((1, 12), (25,), (3, 75), (85,), (100,)):
        mill.feed([an_event(s) for s in seconds])
        mill.run()
    return mill.project.folder


def test_maintenance_says_how_many_rows_went_and_status_from_which_window_on_state_is_kept(folder: Path) -> None:
    before = type_command(folder, "status", "sums", "--json").json["state"]
    assert before[0]["kept_from_window"] is None
    assert "kept from" not in type_command(folder, "status", "sums").out
    for more, rows in ((["--dry-run"], 4), ([], 4), ([], 0)):
        lines = type_command(folder, "maintain", "sums", "--keep", "0 s", "--json", *more).lines
        found = [line for line in lines if line["what"] == "rows of windows closed for good removed"]
        assert [(line["table"], line["count"]) for line in found] == [("state of sums", rows)], more
    [state] = type_command(folder, "status", "sums", "--json").json["state"]
    assert (state["rows"], state["kept_from_window"]) == (2, "2026-01-01T00:01:20+00:00")
    assert "; kept from window 2026-01-01 00:01:20" in type_command(folder, "status", "sums").out
    told = type_command(folder, "history", "sums").out
    assert "forgotten" in told
    assert "the state of windows that end by 2026-01-01 00:01:20 may go" in " ".join(told.split())


def test_explain_names_that_state_is_gone_and_guesses_nothing(folder: Path) -> None:
    type_command(folder, "maintain", "sums", "--keep", "0 s")
    asked = ("explain", "sums", "--key", "a", "--window")
    gone = type_command(folder, *asked, "2026-01-01T00:00:10", "--json").json
    assert gone["state_removed"] is True
    assert gone["slices"] == []
    assert [p["timing"] for p in gone["publications"]] == ["ON_TIME"]
    assert gone["row"]["n"] == 1
    assert "maintenance has removed the state of this window" in type_command(folder, *asked, "2026-01-01T00:00:10").out
    there = type_command(folder, *asked, "2026-01-01T00:01:20", "--json").json
    assert there["state_removed"] is False
    assert [s["batch_id"] for s in there["slices"]] == [4]


def test_whoever_lets_late_records_in_is_told_how_many_stay_and_the_way_out(folder: Path) -> None:
    type_command(folder, "maintain", "sums", "--keep", "0 s")
    told = " ".join(type_command(folder, "late", "admit", "sums", session=lambda _: NO_SPARK).out.split())
    assert "1 record of windows that end by 01-01 00:01:20, whose state was removed" in told
    assert "`tidemill backfill --windows` computes them" in told
    found = type_command(folder, "late", "admit", "sums", "--json", session=lambda _: NO_SPARK).lines
    assert [(c["late"], c["forgotten_until"]) for c in found if c["event"] == "committed"] == [
        (1, "2026-01-01T00:01:20+00:00")
    ]


def test_a_dry_run_of_a_backfill_says_how_many_windows_it_leaves(folder: Path) -> None:
    mill = type_command(folder, "maintain", "sums", "--keep", "0 s")
    assert mill.code == 0
    found = type_command(
        folder, "backfill", "sums", "--windows", "2026-01-01T00:00:10/2026-01-01T00:00:20", "--dry-run"
    )
    assert "windows of sums stay" not in found.out, "batch 1 alone made them"
    asked = ("backfill", "sums", "--from-offsets", "events-0:3", "--to-offsets", "events-0:6", "--dry-run", "--json")
    assert type_command(folder, *asked).json["windows_left"] == {}
