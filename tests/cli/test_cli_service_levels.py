"""Freshness and latency of contracts, as `status` shows them."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.commands import type_command
from support.projects import NO_SPARK, NOW, Mill, an_event, sums
from tidemill.core.exit_code import ExitCode
from tidemill.inspect.service_levels import MeasuredLevel, missed_after, rough, service_levels
from tidemill.run import batch


def promising(*levels: str) -> Any:
    lines = "".join(f"  - {{{level}}}\n" for level in levels)
    return lambda text: f"{text}slaProperties:\n{lines}"


def a_mill(folder: Path, *levels: str, trigger: str = "on_close") -> Mill:
    return sums(folder, NO_SPARK, trigger=trigger, output=promising(*levels))


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)


def measured(mill: Mill, now: datetime) -> list[MeasuredLevel]:
    return list(service_levels(mill.project.pipeline("sums"), mill.project.ledger("sums").view(), now))


def of(mill: Mill, seconds: float) -> list[tuple[str, float | None]]:
    """State and measured seconds of each level, so many seconds after the first event could be."""
    found = measured(mill, NOW + timedelta(seconds=seconds))
    return [(m.kept.value, None if m.measured is None else m.measured / 1_000_000) for m in found]


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [("s", 1), ("sec", 1), ("min", 60), ("h", 3600), ("hours", 3600), ("d", 86_400), ("day", 86_400), ("Days", 86_400)],
)
def test_units_of_time_are_read(tmp_path: Path, unit: str, seconds: int) -> None:
    mill = a_mill(tmp_path, f"property: freshness, value: 1.5, unit: {unit}")
    [level] = mill.project.pipeline("sums").sinks[0].contract.levels
    assert level.most == 1_500_000 * seconds


def test_windows_on_close_cover_the_time_until_the_last_closed_one(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: freshness, value: 20, unit: s")
    assert of(mill, 5) == [("unknown", None)]
    mill.feed([an_event(1), an_event(15)])
    mill.run()
    assert of(mill, 30) == [("met", 20.0)]
    assert of(mill, 31) == [("missed", 21.0)]


def test_windows_on_update_cover_the_newest_event(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: freshness, value: 1, unit: min", trigger="on_update")
    mill.feed([an_event(1), an_event(15)])
    mill.run()
    assert of(mill, 75) == [("met", 60.0)]
    assert of(mill, 76) == [("missed", 61.0)]


def test_a_drained_input_covers_the_newest_event_and_grows_old(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: freshness, value: 1, unit: min")
    mill.feed([an_event(15)])
    mill.catch_up()
    assert of(mill, 76) == [("missed", 61.0)]


def test_latency_is_from_what_the_last_batch_published_to_its_commit(tmp_path: Path) -> None:
    mill = a_mill(
        tmp_path, "property: latency, value: 1, unit: h", "property: latency, value: 10000, unit: d, driver: a"
    )
    mill.feed([an_event(1), an_event(15)])
    commit = mill.run()
    expected = (commit.at - NOW).total_seconds() - 10
    assert of(mill, 0) == [("missed", expected), ("met", expected)]
    mill.feed([an_event(16)])
    mill.run()
    found = measured(mill, NOW)
    assert [m.why for m in found] == ["batch 2, the last one, published no new rows to it"] * 2


def test_status_shows_a_missed_level_and_goes_on(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: freshness, value: 1, unit: h")
    mill.feed([an_event(1), an_event(15)])
    mill.run()
    said = type_command(mill.project.folder, "status", "sums", "--json")
    [level] = said.json["service_levels"]
    assert said.code == ExitCode.DONE
    assert (level["state"], level["promised_seconds"]) == ("missed", 3600.0)
    assert level["covers_until"] == "2026-01-01T00:00:10+00:00"
    for words in (("status",), ("status", "sums")):
        assert "sums: freshness of at most 1 h: missed: " in type_command(mill.project.folder, *words).out


def test_doctor_notes_a_missed_level_and_still_finds_no_problem_with_it(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: freshness, value: 1, unit: h", "property: latency, value: 99999, unit: d")
    mill.feed([an_event(1), an_event(15)])
    mill.run()
    rows = type_command(mill.project.folder, "doctor", "--no-spark", "--json").lines
    assert [row["state"] for row in rows if row["name"].endswith(" of sums") and "ness" in row["name"]] == ["note"]
    assert not [row for row in rows if row["name"] == "latency of sums"]


def test_what_is_missed_right_after_a_commit_is_told_to_the_log_of_a_task(tmp_path: Path) -> None:
    mill = a_mill(tmp_path, "property: latency, value: 1, unit: h", "property: freshness, value: 99999, unit: d")
    mill.feed([an_event(1), an_event(15)])
    [text] = missed_after(mill.project.pipeline("sums"), mill.run())
    assert text.startswith("sums: latency of at most 1 h: missed: ")


def test_a_contract_without_levels_has_none(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK)
    assert type_command(mill.project.folder, "status", "sums", "--json").json["service_levels"] == []


def test_levels_change_no_fingerprint(tmp_path: Path) -> None:
    with_levels = a_mill(tmp_path / "a", "property: freshness, value: 1, unit: h").project.pipeline("sums")
    without = sums(tmp_path / "b", NO_SPARK).project.pipeline("sums")
    assert with_levels.logical_hash == without.logical_hash


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (60, "1 minute"),
        (3_661, "1 hour 1 minute"),
        (28_295_354, "327 days 11 hours"),
        (400 * 86_400 * 10, "4,000 days"),
    ],
)
def test_times_are_shown_in_their_two_largest_units(seconds: int, shown: str) -> None:
    assert rough(seconds) == shown
