"""What the scheduler writes at a run: the note that its tasks have left, and the id of Airflow's own backfill."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def session() -> Iterator[Any]:
    """A session of Airflow's own tables, which are empty."""
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    import_all_models()
    engine = create_engine("sqlite://")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture
def a_run(session: Any) -> Callable[..., Any]:
    """A run in the scheduler's session, and what its tasks have left."""
    from airflow.models.backfill import Backfill
    from airflow.models.dagrun import DagRun
    from airflow.models.xcom import XComModel
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    from tidemill_airflow.naming import NOTE

    def make(
        *left: str, note: str | None = None, backfill_id: int | None = None, dag_id: str = "sums", state: Any = None
    ) -> Any:
        run = DagRun(
            dag_id=dag_id,
            state=state,
            run_id="manual__1",
            logical_date=NOW,
            run_after=NOW,
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            note=note,
            conf={"max_batches": 2},
        )
        session.add(run)
        if backfill_id is not None:
            run.backfill = Backfill(
                id=backfill_id, dag_id="sums", from_date=NOW, to_date=NOW, created_at=NOW, max_active_runs=1
            )
        session.flush()
        for i, text in enumerate(left):
            names = {"dag_id": dag_id, "run_id": "manual__1", "task_id": f"task_{i}", "map_index": -1}
            session.add(XComModel(dag_run_id=run.id, key=NOTE, value=json.dumps(text), **names))
        session.flush()
        return run

    return make


def test_run_gets_the_note_of_its_task_when_it_ends(session: Any, a_run: Callable[..., Any]) -> None:
    from tidemill_airflow.scheduler import listener

    run = a_run("batch 3 (live): 10 read")
    listener.on_dag_run_success(dag_run=run)
    session.flush()
    session.expire(run)
    assert run.note == "Tidemill: batch 3 (live): 10 read"


def test_run_that_failed_gets_its_note_too(a_run: Callable[..., Any]) -> None:
    from tidemill_airflow.scheduler import listener

    run = a_run("FAILED: rule n is broken")
    listener.on_dag_run_failed(dag_run=run)
    assert run.note == "Tidemill: FAILED: rule n is broken"


def test_run_without_tasks_of_tidemill_keeps_its_note(a_run: Callable[..., Any]) -> None:
    from tidemill_airflow.scheduler import listener

    run = a_run(note="by hand")
    listener.on_dag_run_success(dag_run=run)
    assert run.note == "by hand"


@pytest.mark.parametrize(
    ("before", "texts", "after"),
    [
        ("catching up", {"a": "new"}, "catching up\n\nTidemill: new"),
        ("catching up\n\nTidemill: old", {"a": "new"}, "catching up\n\nTidemill: new"),
        ("Tidemill: old", {"a": "new"}, "Tidemill: new"),
        (None, {"a": "x", "b": "y"}, "Tidemill: a: x\nb: y"),
    ],
)
def test_what_people_wrote_stays_and_what_we_wrote_is_replaced(
    before: str | None, texts: dict[str, str], after: str
) -> None:
    from tidemill_airflow.scheduler.notes import joined

    assert joined(before, texts) == after


@pytest.mark.parametrize("before", [None, "x" * 500, "x" * 990, "x" * 1_000])
def test_note_is_cut_where_airflow_would_refuse_it(before: str | None) -> None:
    from tidemill_airflow.scheduler.notes import joined

    found = joined(before, {"a": "long " * 400})
    assert len(found) <= 1_000
    assert found.startswith(before or "Tidemill: long")


def test_tasks_find_the_id_of_airflows_own_backfill_in_the_configuration(
    a_run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemill_airflow.scheduler import listener
    from tidemill_airflow.tasks.micro_batch import backfill_of

    run = a_run(backfill_id=7)
    run.dag = SimpleNamespace(tasks=[SimpleNamespace(pool="tidemill.sums")])
    listener.on_dag_run_running(dag_run=run)
    assert run.conf["max_batches"] == 2
    assert backfill_of({"dag_run": run}) == f"7@{NOW.isoformat()}"  # type: ignore[typeddict-item]


def test_run_of_a_schedule_gets_no_id(a_run: Callable[..., Any]) -> None:
    from tidemill_airflow.scheduler import listener

    run = a_run()
    run.dag = SimpleNamespace(tasks=[SimpleNamespace(pool="tidemill.sums")])
    listener.on_dag_run_running(dag_run=run)
    assert run.conf == {"max_batches": 2}


def test_numbers_that_no_task_can_be_told_become_texts(a_run: Callable[..., Any]) -> None:
    """Airflow lets a run have fields that its form does not know, and a task that gets them never begins."""
    from tidemill_airflow.scheduler import listener

    run = a_run()
    run.dag = SimpleNamespace(tags={"tidemill"}, tasks=[])
    run.conf = {"max_recrods": 10**30, "some": [{"other": -(10**6_000)}, 2**64 - 1, True, 0.5], "max_batches": 2}
    listener.on_dag_run_running(dag_run=run)
    big, other = "a whole number of 100 bits", "a whole number of 19932 bits"
    assert run.conf == {"max_recrods": big, "some": [{"other": other}, 2**64 - 1, True, 0.5], "max_batches": 2}
    run.dag = SimpleNamespace(tags={"other"}, tasks=[])
    run.conf = {"theirs": 10**30}
    listener.on_dag_run_running(dag_run=run)
    assert run.conf == {"theirs": 10**30}


def test_run_that_waits_gets_its_note_when_another_of_its_pipeline_starts_or_ends(
    session: Any, a_run: Callable[..., Any]
) -> None:
    """Airflow tells the scheduler nothing while a run waits."""
    from airflow.models.xcom import XComModel
    from airflow.utils.state import DagRunState
    from sqlalchemy import select

    from tidemill_airflow.scheduler import listener

    waits = a_run("WAITS: the backfill of ana", dag_id="sums.backfill", state=DagRunState.RUNNING, note="for ben")
    works = a_run("PLAN: of this turn", dag_id="sums.replay", state=DagRunState.RUNNING)
    other = a_run("WAITS: for somebody", dag_id="orders.backfill", state=DagRunState.RUNNING)
    live = a_run()
    live.dag = SimpleNamespace(tags={"tidemill"}, tasks=[SimpleNamespace(pool="tidemill.sums")])
    listener.on_dag_run_success(dag_run=live)
    assert [run.note for run in (waits, works, other)] == [
        "for ben\n\nTidemill: WAITS: the backfill of ana",
        None,
        None,
    ]
    [left] = session.scalars(select(XComModel).where(XComModel.dag_id == "sums.backfill"))
    left.value = json.dumps("WORKS: it goes on")
    listener.on_dag_run_running(dag_run=live)
    assert waits.note == "for ben\n\nTidemill: WORKS: it goes on", "what it waited for is over"
