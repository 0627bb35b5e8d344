"""A batch interrupted anywhere, and run again, leaves what an unbroken run leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.projects import ROOT, Mill, an_event, somebody, sums
from tidemill.batch import NothingToDo
from tidemill.core.errors import AuditBlocked, Busy, Incompatible, LogError
from tidemill.core.failpoints import VARIABLE, Injected
from tidemill.project import Project

pytestmark = pytest.mark.spark

WRITES = ["planned", "state:sums", "audited", "quarantine", "late", "published:sums", "committed"]

KILLED = """
import sys
from datetime import UTC, datetime
from tidemill.batch import run_batch
from tidemill.claiming import Request
from tidemill.ledger.process import this_process
from tidemill.project import Project
request = Request(executor=this_process(), clock=datetime.now(UTC), drain=True)
run_batch(Project.load(sys.argv[1]), "sums", request)
"""


def a_mill(folder: Path, session: Any, **more: Any) -> Mill:
    """One committed batch, and records of every fate for the next."""
    mill = sums(folder, session, lateness="20 s", **more)
    mill.feed([an_event(1), an_event(2, "b"), an_event(50)])
    mill.run()
    mill.feed([an_event(31, amount=7), an_event(3), b"{cut", an_event(4, "nobody"), an_event(61), an_event(52, "b")])
    return mill


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Callable[..., Mill]:
    """Gives a copy of `a_mill` in a folder: its first batch is run once for each writer."""
    made: dict[str, Path] = {}

    def copy(folder: Path, writer: str = "delta-rs") -> Mill:
        if writer not in made:
            made[writer] = tmp_path_factory.mktemp("begun")
            a_mill(made[writer], spark, writer=writer)
        shutil.copytree(made[writer], folder, dirs_exist_ok=True)
        return Mill(Project.load(folder), spark, "sums")

    return copy


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory, begun: Callable[..., Mill]) -> dict[str, list[dict[str, Any]]]:
    """Every table after a run in which nothing fails."""
    mill = begun(tmp_path_factory.mktemp("unbroken"))
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 6, "quarantine": 1, "late": 1}
    return tables


@pytest.mark.parametrize("writer", ["delta-rs", "spark"])
@pytest.mark.parametrize("write", WRITES)
def test_a_batch_interrupted_after_any_write_leaves_what_an_unbroken_run_leaves(  # noqa: PLR0917
    tmp_path: Path, begun: Any, unbroken: Any, monkeypatch: pytest.MonkeyPatch, write: str, writer: str
) -> None:
    mill = begun(tmp_path, writer)
    monkeypatch.setenv(VARIABLE, f"{write}=raise")
    with pytest.raises(Injected):
        mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == unbroken


def test_a_batch_that_fails_again_on_every_retry_still_ends_right(
    tmp_path: Path, begun: Any, monkeypatch: pytest.MonkeyPatch, unbroken: Any
) -> None:
    mill = begun(tmp_path)
    for write in WRITES[:-1]:
        monkeypatch.setenv(VARIABLE, f"{write}=raise")
        if write != "planned":
            with pytest.raises(Injected):
                mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == unbroken


@pytest.mark.slow
@pytest.mark.parametrize("write", ["state:sums", "quarantine", "published:sums"])
def test_a_process_killed_after_a_write_leaves_what_an_unbroken_run_leaves(
    tmp_path: Path, begun: Any, unbroken: Any, write: str
) -> None:
    mill = begun(tmp_path)
    environment = {**os.environ, VARIABLE: f"{write}=kill", "PYTHONPATH": str(ROOT / "spark_jobs")}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    mill.catch_up()
    assert mill.everything() == unbroken


def test_rows_of_a_failed_attempt_are_never_seen(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    monkeypatch.setenv(VARIABLE, "state:sums=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    commit = mill.run()
    mill.feed([an_event(15)])
    mill.catch_up()
    assert commit.attempt == 2
    assert [r["n"] for r in mill.published()] == [1, 1]


def test_a_retry_reads_the_same_records_although_new_ones_arrived(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    monkeypatch.setenv(VARIABLE, "planned=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    mill.feed([an_event(2)])
    assert mill.run().accounts["events"].read == 1


def test_another_run_is_busy_until_the_claim_is_old(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    monkeypatch.setenv(VARIABLE, "planned=raise")
    with pytest.raises(Injected):
        mill.run(executor=somebody("task 1"))
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(Busy, match="task 1 on elsewhere"):
        mill.run(executor=somebody("task 2"))
    assert mill.run(executor=somebody("task 1")).attempt == 2


def test_a_broken_rule_of_severity_error_holds_the_pipeline_and_publishes_nothing(tmp_path: Path, spark: Any) -> None:
    rule = "      - {name: n, logicalType: integer, required: true"
    mill = sums(tmp_path, spark, output=lambda t: t.replace(rule, rule + ", logicalTypeOptions: {maximum: 2}"))
    mill.feed([an_event(s) for s in (1, 2, 3)] + [an_event(4, "b"), an_event(20)])
    for _ in range(2):
        with pytest.raises(AuditBlocked) as error:
            mill.run()
        assert "n.maximum" in str(error.value)
        assert "'user': 'a'" in str(error.value)
        assert error.value.exit_code == 4
    assert mill.published() == []
    assert mill.project.ledger("sums").view().position.batch_id == 0

    contract = tmp_path / "data_contracts" / "sums.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 2", "maximum: 3"))
    fixed = Mill(type(mill.project).load(tmp_path), spark, "sums")
    commit = fixed.run()
    assert (commit.batch_id, commit.accounts["events"].read) == (2, 5)
    assert sorted((r["user"], r["n"]) for r in fixed.published()) == [("a", 3), ("b", 1)]


def test_a_batch_that_may_be_published_is_finished_by_its_own_declaration(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1), an_event(20)])
    monkeypatch.setenv(VARIABLE, "audited=raise")
    with pytest.raises(Injected):
        mill.run()
    monkeypatch.delenv(VARIABLE)
    pipeline = tmp_path / "pipelines" / "pipeline.py"
    old = pipeline.read_text()
    pipeline.write_text(old.replace("'unknown'", "'nobody at all'"))
    changed = Mill(type(mill.project).load(tmp_path), spark, "sums")
    with pytest.raises(Incompatible, match="put the old version back"):
        changed.run()
    pipeline.write_text(old)
    assert mill.run().attempt == 2


def test_a_log_that_lost_planned_records_moves_nothing(tmp_path: Path, spark: Any) -> None:
    mill = sums(tmp_path, spark)
    for second in (1, 2, 3):
        mill.feed([an_event(second)])
    segments = sorted(Path(mill.project.settings.log).rglob("*.parquet"))
    segments[1].unlink()
    with pytest.raises(LogError, match="events"):
        mill.run()
    assert mill.published() == []
    assert mill.project.ledger("sums").view().position.batch_id == 0


def test_an_empty_log_is_nothing_to_do(tmp_path: Path, spark: Any) -> None:
    assert isinstance(sums(tmp_path, spark).run(), NothingToDo)
