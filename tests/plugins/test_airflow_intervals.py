"""Airflow's own backfill on a real ledger, with an engine of a few lines instead of Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed
from tidemill.log.records import NewRecord
from tidemill.run import batch

MINUTE = timedelta(minutes=1)
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def mill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mill:
    """Six minutes with ten records each, and four batches of 15 records: a batch is in two or three of the minutes."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    monkeypatch.setattr(batch, "project_spark", lambda *_: NO_SPARK)
    made = sums(tmp_path, NO_SPARK, lateness="1 h")
    for i in range(60):
        at = START + timedelta(seconds=6 * i)
        made.log.append("events", 0, [NewRecord(value=an_event(6 * i), timestamp=at)])
    for _ in range(4):
        made.run(limit=15)
    return made


@pytest.fixture
def interval(mill: Mill) -> Callable[..., Any]:
    """Runs the task of a minute, and returns its result; the text if it was skipped."""
    from airflow.sdk.exceptions import AirflowSkipException
    from airflow.sdk.execution_time.context import OutletEventAccessors
    from airflow.utils.types import DagRunType

    from tidemill_airflow.naming import BACKFILL
    from tidemill_airflow.tasks.micro_batch import MicroBatchOperator

    def run(minute: int, backfill: str | None = "7") -> Any:
        start = START + minute * MINUTE
        run_id = f"backfill__{start:%H:%M}"
        conf = {} if backfill is None else {BACKFILL: backfill}
        dag_run = SimpleNamespace(
            run_id=run_id,
            run_type=DagRunType.BACKFILL_JOB,
            data_interval_start=start,
            data_interval_end=start + MINUTE,
            conf=conf,
        )
        names = {"dag_id": "sums", "run_id": run_id, "task_id": "batch", "map_index": -1, "try_number": 1}
        ti = SimpleNamespace(**names, xcom_push=lambda **_: None)
        operator = MicroBatchOperator(task_id="batch", pipeline="sums", project=str(mill.project.folder))
        context: Any = {"ti": ti, "dag_run": dag_run, "outlet_events": OutletEventAccessors()}
        try:
            return operator.execute(context)
        except AirflowSkipException as skip:
            return str(skip)

    return run


def reads(mill: Mill) -> list[int]:
    """The numbers of records that the batches of backfills have read."""
    events = [entry.event for entry in mill.project.ledger("sums").entries()]
    commits = [e for e in events if isinstance(e, Committed) and e.kind is Kind.BACKFILL]
    return [sum(a.read for a in c.accounts.values()) for c in commits]


def test_batches_that_intervals_share_are_computed_again_once(mill: Mill, interval: Callable[..., Any]) -> None:
    before = mill.published()
    results = [interval(minute) for minute in range(6)]
    assert reads(mill) == [15, 15, 15, 15]
    assert [result for result in results if isinstance(result, str)] == [
        "done by backfill__00:01: the same backfill has computed all batches of this interval again",
        "done by backfill__00:04: the same backfill has computed all batches of this interval again",
    ]
    assert mill.published() == before


def test_another_backfill_of_airflow_computes_the_same_interval_again(mill: Mill, interval: Callable[..., Any]) -> None:
    for backfill in ("7", "7", "8"):
        interval(0, backfill)
    assert reads(mill) == [15, 15]


def test_what_somebody_else_computed_since_is_computed_again(mill: Mill, interval: Callable[..., Any]) -> None:
    assert len(interval(0, "7")["batches"]) == 1
    assert len(interval(0, "8")["batches"]) == 1
    # What backfill 7 has computed is no longer what readers see.
    assert reads(mill) == [15, 15]
    assert len(interval(1, "7")["batches"]) == 1
    assert reads(mill)[2:] == [30]


def test_without_the_schedulers_listener_every_run_computes_its_interval_itself(
    mill: Mill, interval: Callable[..., Any]
) -> None:
    assert [len(interval(minute, None)["batches"]) for minute in (0, 1)] == [1, 1]
    assert reads(mill) == [15, 30]


def test_cleared_run_announces_its_batches_and_computes_nothing(mill: Mill, interval: Callable[..., Any]) -> None:
    first, second = interval(0), interval(0)
    assert [b["batch_id"] for b in first["batches"]] == [b["batch_id"] for b in second["batches"]]
    assert reads(mill) == [15]


def test_interval_without_records_is_skipped_and_says_so(interval: Callable[..., Any]) -> None:
    assert "no committed batch has read a record that arrived in the log at these times" in interval(90)


def test_widening_is_said_before_and_after(interval: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    result = interval(0)
    assert (result["asked"], result["reads"], result["computed_again"]) == (10, 15, "batch 1")
    said = capsys.readouterr().out
    assert "10 records are asked for, 15 are read again: only whole batches can be computed again" in said
    assert said.index("are read again") < said.index("batch 5 (backfill)") < said.index("batch 5 committed")
    result = interval(1)
    assert (result["asked"], result["reads"], result["computed_again"]) == (10, 15, "batch 2")
