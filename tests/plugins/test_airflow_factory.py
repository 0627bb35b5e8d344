"""The DAG of a pipeline, as Airflow sees it before anything runs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest

from support.projects import NO_SPARK, sums
from tidemill.core.bind.flow import Flow
from tidemill.core.errors import ConfigError, DeclarationError
from tidemill_airflow.dags.entities import PipelineDag, pipeline_dag

KINDS = ("", ".backfill", ".decide", ".rebuild", ".replay", ".rewind", ".verify")
"""What the names of the DAGs of a pipeline end with."""


@pytest.fixture
def entity(flow: Flow) -> PipelineDag:
    return pipeline_dag(flow, "/srv/shop", "/srv/lake")


@pytest.fixture
def dag(entity: PipelineDag) -> Any:
    from tidemill_airflow.dags.pipeline import make_dag

    return make_dag(entity)


def test_dag_is_called_as_its_pipeline_and_shows_its_page(dag: Any) -> None:
    assert dag.dag_id == "page_views"
    assert dag.description == "Views of each page."
    assert dag.doc_md.startswith("Views of each page.")
    assert "#### Table `page_views_by_minute`" in dag.doc_md


def test_pipeline_without_a_description_is_described_by_what_it_connects(flow: Flow) -> None:
    silent = replace(flow, spec=replace(flow.spec, description=""))
    assert pipeline_dag(silent, "/srv/shop", "/srv/lake").description == (
        "web.access to bot_hits, page_views_by_minute, every 2 minutes"
    )


def test_description_of_many_lines_is_shown_by_its_first(flow: Flow) -> None:
    wordy = replace(flow, spec=replace(flow.spec, description="\nViews of each page.\n\nMore.\n"))
    assert pipeline_dag(wordy, "/srv/shop", "/srv/lake").description == "Views of each page."


def test_tags_are_no_longer_than_airflow_allows_and_never_empty(entity: PipelineDag) -> None:
    odd = replace(entity, owner="", topics=("t" * 249, "t" * 248))
    assert odd.tags == ("tidemill", f"topic:{'t' * 94}")


def test_runs_start_as_often_as_declared_one_at_a_time_and_never_for_the_past(dag: Any) -> None:
    assert (dag.timetable.expression, dag.timetable.interval) == ("*/2 * * * *", timedelta(minutes=2))
    assert (dag.catchup, dag.max_active_runs) == (False, 1)


def test_tags_are_tidemill_owner_and_topics_with_what_they_are(dag: Any) -> None:
    assert set(dag.tags) == {"tidemill", "owner:web", "topic:web.access"}


def test_one_task_does_the_whole_batch(dag: Any) -> None:
    [task] = dag.tasks
    assert (task.task_id, task.owner, task.pipeline, task.project) == ("batch", "web", "page_views", "/srv/shop")


def test_task_waits_in_its_pipelines_own_pool_with_live_runs_first(dag: Any) -> None:
    from tidemill_airflow.scheduler.priority import LiveBeforeBackfill

    [task] = dag.tasks
    assert (task.pool, task.pool_slots) == ("tidemill.page_views", 1)
    assert isinstance(task.weight_rule, LiveBeforeBackfill)


def test_task_updates_the_batches_of_its_pipeline_and_every_published_table(dag: Any) -> None:
    [task] = dag.tasks
    assert [asset.name for asset in task.outlets] == ["page_views.batches", "bot_hits", "page_views_by_minute"]
    assert len({asset.uri for asset in task.outlets}) == 3


def test_scheduled_run_executes_one_batch_of_the_projects_own_limit(dag: Any) -> None:
    params = dag.params.dump()
    assert params == {"max_records": None, "max_batches": 1}


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_records", 0), ("max_records", "many"), ("max_records", 1.5), ("max_batches", None), ("max_batches", 101)],
)
def test_form_of_a_run_refuses_values_out_of_bounds(dag: Any, name: str, value: Any) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(name).resolve(value)


@pytest.mark.parametrize("given", [{"max_records": None, "max_batches": 1}, {"max_records": 500, "max_batches": 7}])
def test_values_of_the_form_reach_the_task_with_their_types(dag: Any, given: dict[str, Any]) -> None:
    [task] = dag.tasks
    task.render_template_fields({"params": given})
    assert {"max_records": task.max_records, "max_batches": task.max_batches} == given


@pytest.fixture
def two_pipelines(monkeypatch: pytest.MonkeyPatch, flow: Flow) -> list[str]:
    """A project of two pipelines; the list tells which were bound."""
    bound: list[str] = []

    def pipeline(name: str) -> Flow:
        if name not in ("orders", "visits"):
            raise DeclarationError("there is no such pipeline")
        bound.append(name)
        return replace(flow, spec=replace(flow.spec, name=name))

    class TwoPipelines(SimpleNamespace):
        folder, stopped, settings = Path("/srv/shop"), {}, SimpleNamespace(lake="/srv/lake", pipelines="/srv/shop")

        def pipeline_names(self) -> tuple[str, ...]:
            return ("orders", "visits")

    monkeypatch.setattr("tidemill_airflow.factory.Project.load", lambda folder: TwoPipelines(declared=pipeline))
    return bound


def test_every_pipeline_of_a_project_gets_a_dag(two_pipelines: list[str]) -> None:
    from tidemill_airflow.factory import dags_for

    dags = dags_for("/srv/shop")
    kinds = [f"{name}{kind}" for name in ("orders", "visits") for kind in KINDS]
    assert {name: dag.dag_id for name, dag in dags.items()} == {name: name for name in ["tidemill.maintenance", *kinds]}
    assert len({dags[name].tasks[0].pool for name in ("orders", "orders.backfill", "visits")}) == 2
    assert [task.task_id for task in dags["tidemill.maintenance"].tasks] == [
        "orders.fold",
        "orders",
        "visits.fold",
        "visits",
    ]


def test_task_process_makes_only_the_dag_that_it_runs(
    two_pipelines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemill_airflow.factory import dags_for

    for wanted in [f"visits{kind}" for kind in KINDS]:
        two_pipelines.clear()
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)
        assert list(dags_for("/srv/shop")) == [wanted]
        assert two_pipelines == ["visits"]


def test_task_process_of_a_dag_that_is_none_of_ours_makes_all(
    two_pipelines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemill_airflow.factory import dags_for

    for wanted in ("others", "visits.others"):
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)
        assert len(dags_for("/srv/shop")) == 2 * len(KINDS) + 1


def test_task_process_waits_a_short_time_for_files_of_other_pipelines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemill_airflow.factory import dags_for

    sums(tmp_path, NO_SPARK)
    (tmp_path / "pipelines" / "a.py").write_text("from time import sleep\nwhile True:\n    sleep(0.1)\n")
    monkeypatch.setattr("tidemill.project.pipeline_files.OTHERS", timedelta(seconds=0.2))
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "sums")
    began = monotonic()
    assert list(dags_for(tmp_path)) == ["sums"]
    assert monotonic() - began < 5


def test_people_are_asked_only_for_the_pipelines_that_want_it(two_pipelines: list[str]) -> None:
    from tidemill_airflow.factory import dags_for

    for wanted, asking in ((False, []), (True, ["orders", "visits"]), (["visits"], ["visits"])):
        dags = dags_for("/srv/shop", ask_people=wanted)
        assert [name for name, dag in dags.items() if any(t.on_failure_callback for t in dag.tasks)] == asking


def test_a_pipeline_that_wants_people_asked_and_does_not_exist_is_refused(two_pipelines: list[str]) -> None:
    from tidemill_airflow.factory import dags_for

    with pytest.raises(ConfigError, match="ask_people: there is no pipeline order"):
        dags_for("/srv/shop", ask_people=["order"])
    with pytest.raises(ConfigError, match="ask_people: expected True, False or names of pipelines, found None"):
        dags_for("/srv/shop", ask_people=None)  # type: ignore[arg-type]
