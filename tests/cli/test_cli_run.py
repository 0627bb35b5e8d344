"""`tidemill run`: batches, what is said of them, and how a run ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.builders import NOW
from support.commands import Said, type_command
from support.projects import Mill, an_event, somebody, sums, write_settings
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.run.claiming import Request, next_plan

Run = Callable[..., Said]


@pytest.fixture
def busy_mill(tmp_path: Path, spark: Any) -> Mill:
    """A project with six records, one of them broken."""
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), an_event(2, "b"), b"{cut", an_event(12), an_event(31), an_event(32, "b")])
    return mill


@pytest.fixture
def run(busy_mill: Mill) -> Run:
    """Types `tidemill run sums` in that project, in the session of all tests."""

    def type_run(*options: object) -> Said:
        return type_command(busy_mill.project.folder, "run", "sums", *options, session=lambda _: busy_mill.session)

    return type_run


def test_run_without_records_is_nothing_to_do_and_starts_no_spark(tidemill):
    def never(_: object) -> None:
        raise AssertionError("Spark was started")

    said = tidemill("run", "sums", "--json", session=never)
    assert said.code == ExitCode.NOTHING_TO_DO
    assert said.json == {"event": "ended", "outcome": "nothing to do", "batches": 0}


def test_catching_up_with_nothing_is_done(tidemill):
    said = tidemill("run", "sums", "--until-caught-up", "--json")
    assert said.code == ExitCode.DONE
    assert said.json["outcome"] == "caught up"


@pytest.mark.spark
def test_run_executes_one_batch(run, busy_mill):
    said = run("--limit", 2, "--json")
    assert said.code == ExitCode.DONE
    committed, ended = said.lines
    assert committed["event"] == "committed"
    assert (committed["batch_id"], committed["attempt"], committed["read"], committed["aggregated"]) == (1, 1, 2, 2)
    assert ended == {"event": "ended", "outcome": "stopped", "batches": 1}
    assert busy_mill.project.ledger("sums").view().position.batch_id == 1


@pytest.mark.spark
def test_commit_as_json_has_account_watermark_tables_and_reasons(run):
    committed = run("--json").lines[0]
    parts = ("read", "aggregated", "filtered", "rejected", "late", "shed")
    assert [committed[part] for part in parts] == [6, 5, 0, 1, 0, 0]
    assert committed["watermark"] == "2026-01-01T00:00:32+00:00"
    assert committed["published"] == {"sums": 3}
    assert set(committed["versions"]) == {"state of sums", "sums", "quarantine"}
    assert list(committed["reasons"].values()) == [1]
    assert committed["seconds"] > 0


@pytest.mark.spark
def test_batches_bounds_how_many_are_executed(run):
    said = run("--until-caught-up", "--batches", 2, "--limit", 1, "--json")
    assert said.code == ExitCode.DONE
    assert [each.get("batch_id") for each in said.lines] == [1, 2, None]
    assert said.lines[-1]["outcome"] == "stopped"


@pytest.mark.spark
def test_drain_closes_every_window(run, busy_mill):
    said = run("--until-caught-up", "--drain", "--json")
    assert said.code == ExitCode.DONE
    assert said.lines[-2]["watermark"] == "end"
    assert sum(row["n"] for row in busy_mill.published()) == 5


@pytest.mark.spark
def test_people_see_a_line_a_batch_under_a_head(run):
    said = run("--until-caught-up", "--limit", 3)
    head, first, second, ended, rejected = said.out.splitlines()
    assert head.split() == [
        "batch", "read", "aggregated", "filtered", "rejected", "late", "published", "watermark", "secs"
    ]  # fmt: skip
    assert first.split()[:6] == ["1", "3", "2", "0", "1", "0"]
    assert second.split()[:6] == ["2", "3", "3", "0", "0", "0"]
    assert ended == "caught up after 2 batches"
    assert rejected == "1 rejected record: see `tidemill quarantine ls sums`"
    assert "\x1b" not in said.out


@pytest.mark.spark
def test_run_that_finds_another_at_work_is_busy(run, busy_mill):
    ledger = busy_mill.project.ledger("sums")
    request = Request(executor=somebody("another task"), clock=NOW.replace(year=2099))
    plan = next_plan(busy_mill.project.pipeline("sums"), busy_mill.log, ledger.view(), request)
    ledger.append(lambda _: Planned(plan=plan, executor=request.executor, at=request.clock))
    said = run("--json")
    assert said.code == ExitCode.BUSY
    assert said.json["error"] == "Busy"
    assert said.json["retryable"] is True
    assert "another task on elsewhere" in said.err


@pytest.mark.spark
def test_rule_of_severity_error_blocks_the_batch(tmp_path, spark):
    column = "{name: n, logicalType: integer, required: true}"
    limited = column.replace("}", ", logicalTypeOptions: {maximum: 1}}")
    mill = sums(tmp_path, spark, output=lambda text: text.replace(column, limited))
    mill.feed([an_event(1), an_event(2), an_event(50)])
    for _ in range(2):
        said = type_command(tmp_path, "run", "sums", "--json", session=lambda _: spark)
        assert said.code == ExitCode.BLOCKED
        assert said.json["error"] == "AuditBlocked"
        assert "n.maximum" in said.err
        assert "row {" in said.err
    status = type_command(tmp_path, "status", "sums", "--json").json
    assert status["open_batch"]["blocked"] is True
    assert status["lag"] == 3
    assert mill.published() == []


def test_log_that_lost_records_is_wrong(tidemill, mill):
    mill.log.delete_topic("events")
    said = tidemill("run", "sums", "--json")
    assert said.code == ExitCode.WRONG
    assert said.json["error"] == "UnknownTopic"


def child(mill: Mill, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "tidemill.cli.main",
        "--project",
        str(mill.project.folder),
        "run",
        "sums",
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environ})


@pytest.mark.spark
@pytest.mark.long
def test_process_that_is_killed_is_followed_by_one_that_takes_over(busy_mill):
    write_settings(busy_mill.project.folder, driver_records=0)
    killed = child(busy_mill, "--json", **{VARIABLE: "published:sums=kill"})
    assert killed.returncode == -signal.SIGKILL
    assert killed.stdout == ""
    assert busy_mill.project.ledger("sums").view().open_batch is not None
    done = child(busy_mill, "--json", "--drain")
    assert done.returncode == ExitCode.DONE, done.stderr
    committed = json.loads(done.stdout.splitlines()[0])
    assert (committed["batch_id"], committed["attempt"]) == (1, 2)
    assert [(r["user"], r["n"]) for r in busy_mill.published()] == [("a", 1), ("b", 1), ("a", 1)]
    assert [r["offset"] for r in busy_mill.own("quarantine")] == [2]
    assert done.stderr == "", "a JVM of our own is quiet"
    assert (busy_mill.project.folder / ".tidemill" / "spark.log").is_file()


@pytest.mark.spark
@pytest.mark.long
def test_ctrl_c_ends_a_run_without_a_stack_trace(busy_mill):
    script = f"""
import os, signal
import tidemill.run.batch as batch
from tidemill.cli.main import main
def interrupted(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)
batch.audit = interrupted
main(["--project", {str(busy_mill.project.folder)!r}, "run", "sums"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert "Traceback" not in done.stderr
    assert re.search("^interrupted: ", done.stderr, re.MULTILINE)
