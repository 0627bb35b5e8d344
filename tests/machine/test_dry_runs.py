"""What a dry run shows is what the real run does, and what that refuses it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from machine.conftest import run
from machine.test_redefinitions import MOST, declare, from_now
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event, totals
from tidemill.core.exit_code import ExitCode

REPLAY = ("quarantine", "replay", "sums")


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """The second batch rejected a record."""
    made = a_mill()
    made.feed([an_event(1), an_event(15)])
    run(made)
    made.feed([an_event(12, amount=2_000_000), an_event(25)])
    run(made)
    return made


def test_the_dry_run_of_a_replay_refuses_what_the_replay_refuses(mill: Mill) -> None:
    declare(mill, MOST, "maximum: 3000000")
    declare(mill, "'nobody'", "'anybody'", "pipelines/pipeline.py")
    for more in ((), ("--json",)):
        dry = type_command(mill.project.folder, *REPLAY, "--dry-run", *more)
        assert (dry.code, "changed what published numbers mean" in dry.err) == (ExitCode.WRONG, True)
        assert "that takes" not in dry.out
    from_now(mill)
    dry, real = (type_command(mill.project.folder, *REPLAY, *more) for more in (("--dry-run",), ()))
    assert (dry.code, real.code) == (ExitCode.WRONG, ExitCode.WRONG)
    assert "put some of these records aside before batch 3" in dry.err
    mixed = type_command(mill.project.folder, *REPLAY, "--mixed", "--dry-run")
    assert (mixed.code, "that takes 1 batch" in mixed.out) == (ExitCode.DONE, True)
    done = type_command(mill.project.folder, *REPLAY, "--mixed", session=lambda _: NO_SPARK)
    assert done.code == ExitCode.DONE


def test_the_dry_run_of_a_backfill_names_bounds_of_windows_and_what_was_put_aside(mill: Mill) -> None:
    mill.feed([an_event(5), an_event(39, amount=2_000_000), an_event(45), an_event(58)])
    run(mill)
    asked = ("backfill", "sums", "--from-offsets", "events-0:4", "--dry-run")
    shown = type_command(mill.project.folder, *asked, "--json").json
    told = type_command(mill.project.folder, *asked).out
    assert "1 of these records now count in windows of sums from 2026-01-01 00:00:00 to 2026-01-01 00:00:10" in told
    assert "rejected  1 of these records are judged again" in told
    assert shown["late"]["sums"]["records"] == shown["rejected"] == 1
    everything = type_command(mill.project.folder, "backfill", "sums", "--from-offsets", "events-0:0", *asked[4:])
    assert "2026-01-01 00:00:50" in everything.out
    assert "00:00:58" not in everything.out


def test_the_dry_run_of_a_backfill_names_every_sliding_window_of_a_late_record(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill(window='Sliding("30 seconds", "10 seconds")')
    mill.feed([an_event(5), an_event(95)])
    run(mill)
    mill.feed([an_event(25)])
    run(mill)
    shown = type_command(mill.project.folder, "backfill", "sums", "--from-offsets", "events-0:2", "--dry-run").out
    assert "1 of these records now count in windows of sums from 2026-01-01 00:00:00 to 2026-01-01 00:00:50" in shown


def test_the_dry_run_of_a_backfill_refuses_aggregates_that_its_state_does_not_have(mill: Mill) -> None:
    declare(mill, 'Sum("amount")', 'Sum("amount + 1")', "pipelines/pipeline.py")
    for more in (["--dry-run"], ["--dry-run", "--json"], []):
        said = type_command(mill.project.folder, "backfill", "sums", "--from-offsets", "events-0:0", *more)
        assert said.code == ExitCode.WRONG
        assert "the state of sums was built by another declaration" in said.err
        assert "that takes" not in said.out


def test_the_dry_run_of_a_backfill_counts_late_records_of_totals(tmp_path: Path, tiny: None) -> None:
    mill = totals(tmp_path, NO_SPARK)
    mill.feed([an_event(5)])
    mill.run(drain=True)
    mill.feed([an_event(6)])
    mill.run()
    asked = ("backfill", mill.name, "--from-offsets", "events-0:1", "--dry-run")
    told = type_command(tmp_path, *asked).out
    assert f"1 of these records now count in {mill.name}\n" in told
    shown = type_command(tmp_path, *asked, "--json").json
    assert shown["late"] == {mill.name: {"records": 1, "windows": []}}


def test_times_of_no_arrival_are_told_from_times_of_events(mill: Mill) -> None:
    asked = ("--from-time", "1999-01-01", "--to-time", "1999-01-02", "--dry-run")
    said = type_command(mill.project.folder, "backfill", "sums", *asked)
    assert said.code == ExitCode.WRONG
    assert "for event times say --windows FROM/TO" in said.err


def test_what_changed_names_only_rules_that_need_a_decision_and_patterns_as_they_are_written(mill: Mill) -> None:
    user = "{name: user, logicalType: string}"
    declare(mill, user, user[:-1] + ", logicalTypeOptions: {pattern: '[a-z-]+'}}")
    declare(mill, MOST, "maximum: 3000000")
    mill.feed([an_event(70)])
    said = type_command(mill.project.folder, "plan", "sums", "--dry-run")
    assert (said.code, "[a-z-]+" in said.err) == (ExitCode.WRONG, True)
    assert "(?d)" not in said.err
    assert "3000000" not in said.err
