"""A batch interrupted anywhere, and run again, leaves what an unbroken run leaves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event, somebody, sums
from support.recovery import WRITES, paused
from tidemill.core.errors import AuditBlocked, Busy, Incompatible
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.run.batch import NothingToDo

pytestmark = pytest.mark.spark


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


@pytest.mark.parametrize("first", ["planned", "audited", "published:sums"])
def test_a_second_attempt_interrupted_at_its_claim_leaves_what_an_unbroken_run_leaves(
    tmp_path: Path, begun: Any, unbroken: Any, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    mill = begun(tmp_path)
    for place in (first, "claimed"):
        monkeypatch.setenv(VARIABLE, f"{place}=raise")
        with pytest.raises(Injected, match=f"failpoint after {place} "):
            mill.run(drain=True)
    monkeypatch.delenv(VARIABLE)
    assert mill.run(drain=True).attempt == 3
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


def test_another_run_is_busy_while_a_batch_is_executed(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])

    def meanwhile() -> None:
        for days in (0, 1, -1):
            with pytest.raises(Busy, match="task 1 on elsewhere"):
                mill.run(executor=somebody("task 2"), clock=datetime.now(UTC) + timedelta(days=days))

    happened = paused(monkeypatch, "before:committed", meanwhile)
    assert mill.run(executor=somebody("task 1")).attempt == 1
    assert happened


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


def test_an_empty_log_is_nothing_to_do(tmp_path: Path, spark: Any) -> None:
    assert isinstance(sums(tmp_path, spark).run(), NothingToDo)
