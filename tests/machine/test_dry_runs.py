"""What a dry run shows is what the real run does, and what that refuses it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from machine.conftest import run
from machine.test_redefinitions import MOST, declare, from_now
from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event
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
