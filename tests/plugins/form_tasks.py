"""Tasks of forms, executed without a scheduler and without Spark."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill
from tidemill.project.project import Project
from tidemill.run import batch
from tidemill_airflow.naming import NOTE


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of a few lines instead of Spark."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)
    monkeypatch.setattr(batch, "project_spark", lambda *_, **__: NO_SPARK)


def again(mill: Mill) -> Mill:
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


NOTES: list[str] = []
"""What the tasks left as notes of their runs."""


class Events(dict[Any, Any]):
    """What a task announces."""

    def __missing__(self, _: Any) -> Any:
        return SimpleNamespace(add_partitions=lambda _: None, extra={})


def executed(
    mill: Mill, make: Callable[..., Any], form: dict[str, Any], *, tries: int = 1, run: str = "manual__1", **more: Any
) -> Any:
    """What the task returns for this form."""
    task = make(task_id="it", pipeline=mill.name, project=str(mill.project.folder))
    task.request = form
    for name, value in more.items():
        setattr(task, name, value)
    ti = SimpleNamespace(
        dag_id="sums.form",
        run_id=run,
        task_id="it",
        map_index=-1,
        try_number=tries,
        xcom_push=lambda *, key, value: NOTES.append(value) if key == NOTE else None,
    )
    dag_run = SimpleNamespace(triggering_user_name=None, run_type=SimpleNamespace(value="manual"), conf=form)
    return task.execute({"ti": ti, "dag_run": dag_run, "outlet_events": Events()})
