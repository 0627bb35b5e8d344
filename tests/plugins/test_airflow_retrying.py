"""A task waits for a Spark, a log or a store that does not answer, and gives up early where waiting does not help."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from servers import free_ports

from support.projects import NO_SPARK, sums
from tidemill.core.errors import CommitUnknown, EngineError, EngineUnreachable, LogUnreachable, StoreUnreachable
from tidemill.project.project import Project

ABSENT = [EngineUnreachable, LogUnreachable, StoreUnreachable]


@pytest.fixture
def task(tmp_path: Path) -> Any:
    """The task of a live DAG whose Spark Connect server is not there."""
    from tidemill_airflow.factory import dags_for

    mill = sums(tmp_path, NO_SPARK, driver_records=0)
    mill.feed([b'{"ts": "2026-01-01T00:00:00Z", "user": "ann", "amount": 1}'])
    file = tmp_path / "tidemill.toml"
    remote = f'[spark]\nremote = "sc://127.0.0.1:{free_ports(1)[0]}"\n'
    file.write_text(file.read_text().replace("[spark]\n", remote))
    [task] = dags_for(tmp_path)["sums"].tasks
    return task


def decision(task: Any, error: BaseException, try_number: int, max_tries: int | None = None) -> str:
    retries = task.retries if max_tries is None else max_tries
    found: str = task.retry_policy.evaluate(error, try_number, retries, {"task": task}).action.value
    return found


def test_task_outlasts_a_quarter_of_an_hour_without_spark_by_the_rules_of_airflow(task: Any) -> None:
    from airflow.models.taskinstance import TaskInstance

    begin = now = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1, task.retries + 1):
        assert decision(task, EngineUnreachable("nobody listens"), number) == "retry"
        ti: Any = SimpleNamespace(
            task=task,
            try_number=number,
            retry_delay_override=None,
            dag_id="sums",
            task_id="batch",
            logical_date=begin,
            end_date=now,
        )
        now = TaskInstance.next_retry_datetime(ti)
        assert now - ti.end_date <= timedelta(minutes=2)
    assert timedelta(minutes=15) < now - begin < timedelta(minutes=30)


def test_batch_without_its_server_is_not_begun_and_fails_in_a_way_that_is_waited_for(task: Any) -> None:
    ti = SimpleNamespace(dag_id="sums", run_id="manual__1", task_id="batch", map_index=-1, try_number=1)
    task.render_template_fields({"params": {"max_records": None, "max_batches": 1}})
    with pytest.raises(EngineUnreachable, match="nobody listens at"):
        task.execute({"ti": ti, "outlet_events": {}})
    assert Project.load(task.project).ledger("sums").view().last_batch_id == 0


@pytest.mark.parametrize("error", ABSENT)
def test_absence_is_waited_for_to_the_last_retry(task: Any, error: type[Exception]) -> None:
    assert {decision(task, error("no answer"), number) for number in range(1, task.retries + 1)} == {"retry"}


@pytest.mark.parametrize("error", [EngineError("job failed"), CommitUnknown("lost"), RuntimeError("a defect")])
def test_other_errors_end_the_run_after_three_retries(task: Any, error: Exception) -> None:
    assert [decision(task, error, number) for number in range(1, 6)] == ["default"] * 3 + ["fail"] * 2


def test_cleared_task_gets_its_retries_anew(task: Any) -> None:
    # Airflow counts the tries of a task on after a clear, and raises its limit.
    most = 9 + task.retries
    assert [decision(task, EngineError("job failed"), 10 + n, most) for n in range(4)] == ["default"] * 3 + ["fail"]


def test_fewer_retries_that_a_project_chose_are_kept(task: Any) -> None:
    task.retries = 1
    assert [decision(task, EngineError("job failed"), number) for number in (1, 2)] == ["default", "default"]


def test_policy_says_why() -> None:
    from tidemill_airflow.dags.retrying import Patience

    assert "7 retries are left" in str(Patience().evaluate(EngineUnreachable("no"), 6, 12).reason)
    assert "failed 4 times" in str(Patience().evaluate(EngineError("no"), 4, 12).reason)


def test_policy_survives_being_written_and_read() -> None:
    from tidemill_airflow.dags.retrying import Patience

    assert Patience.deserialize(Patience(others=5).serialize()) == Patience(others=5)


def test_every_task_of_every_dag_is_patient(tmp_path: Path) -> None:
    from tidemill_airflow.dags.retrying import Patience
    from tidemill_airflow.factory import dags_for

    sums(tmp_path, NO_SPARK)
    tasks = [task for dag in dags_for(tmp_path).values() for task in dag.tasks]
    # The task that asks a person only waits: a second try would ask again.
    tasks = [task for task in tasks if task.task_id != "ask"]
    assert len(tasks) == 9
    assert {type(task.retry_policy) for task in tasks} == {Patience}
    assert len({(task.retries, task.retry_delay, task.max_retry_delay) for task in tasks}) == 1
