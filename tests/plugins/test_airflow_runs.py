"""What a person may give a run of a pipeline's own DAG and of maintenance; runs of Airflow's own may have more."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.form_tasks import NOTES, executed, tiny  # noqa: F401  a fixture
from support.projects import NO_SPARK, Mill, an_event, sums

pytestmark = pytest.mark.airflow


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    made = sums(tmp_path, NO_SPARK)
    made.feed([an_event(1)])
    made.run()
    return made


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"keep": "forever"}, "keep: not a duration: 'forever'"),
        ({"keep": 7}, "keep: expected a text, found 7"),
        ({"keep": "-7 days"}, "keep must not be negative"),
        ({"kep": "7 days"}, "the form has no field 'kep'"),
    ],
)
def test_maintenance_checks_its_form_before_it_does_anything(
    mill: Mill, form: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks import maintaining

    done: list[object] = []
    monkeypatch.setattr(maintaining, "tasks_of", lambda *_: done)
    monkeypatch.setattr("tidemill_airflow.tasks.batch_operator.amendment_runner", lambda *_, **__: done.append(1))
    for task in (maintaining.FoldOperator, maintaining.MaintenanceOperator):
        NOTES.clear()
        with pytest.raises(AirflowFailException, match=says):
            executed(mill, task, form, keep=form.get("keep"))
        assert NOTES[-1].startswith("FAILED: ")
    assert not done


def test_maintenance_goes_back_as_far_as_its_form_says(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemill_airflow.tasks import maintaining

    asked: list[Any] = []
    monkeypatch.setattr(maintaining, "tasks_of", lambda *given: asked.append(given[2]) or [])
    for keep in (None, "", "7 days"):
        executed(mill, maintaining.MaintenanceOperator, {"keep": keep}, keep=keep)
    assert [each and each.days for each in asked] == [None, None, 7]


def test_both_tasks_of_maintenance_get_the_form() -> None:
    from tidemill_airflow.tasks.maintaining import FoldOperator, MaintenanceOperator

    assert all("keep" in task.template_fields for task in (FoldOperator, MaintenanceOperator))


def test_run_that_a_person_starts_refuses_a_field_that_its_form_does_not_have(mill: Mill) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tidemill_airflow.tasks.micro_batch import MicroBatchOperator

    mill.feed([an_event(2)])
    with pytest.raises(AirflowFailException, match="the form has no field 'max_recrods'\n  fix: did you mean max_r"):
        executed(mill, MicroBatchOperator, {"max_recrods": 5})
    assert executed(mill, MicroBatchOperator, {"max_records": 5, "max_batches": 1})["batches"]


@pytest.mark.parametrize("run_type", ["scheduled", "backfill", "asset_triggered", "asset_materialization"])
def test_runs_of_airflows_own_may_have_other_configurations(run_type: str) -> None:
    from airflow.utils.types import DagRunType

    from tidemill_airflow.tasks.asked import RUN_FIELDS
    from tidemill_airflow.tasks.batch_operator import check_conf

    for conf in (None, {}, {"theirs": 1}):
        run: Any = SimpleNamespace(run_type=DagRunType(run_type), conf=conf)
        check_conf({"dag_run": run}, RUN_FIELDS)
    check_conf({}, RUN_FIELDS)
