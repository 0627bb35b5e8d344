"""What a project chooses for its DAGs and tasks reaches all of them; what must stay is refused with the reason."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import NO_SPARK, sums
from tidemill.core.errors import ConfigError

FORMS = (
    "backfill/batches",
    "decide/ask",
    "decide/decide",
    "rebuild/rebuild",
    "replay/batches",
    "rewind/rewind",
    "verify/verify",
)
"""The tasks of the DAGs of a pipeline that a person triggers."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project of two pipelines, `sums` and `more`."""
    sums(tmp_path, NO_SPARK)
    text = (tmp_path / "pipelines" / "pipeline.py").read_text()
    contract = (tmp_path / "data_contracts" / "sums.odcs.yaml").read_text()
    (tmp_path / "pipelines" / "more.py").write_text(text.replace('"sums"', '"more"'))
    (tmp_path / "data_contracts" / "more.odcs.yaml").write_text(contract.replace("sums", "more"))
    return tmp_path


def dags(folder: Path, **options: Any) -> dict[str, Any]:
    from tidemill_airflow.factory import dags_for

    return dags_for(folder, **options)


def options(**given: Any) -> Any:
    from tidemill_airflow.factory import DagOptions

    return DagOptions(**given)


def told(context: Any) -> None:
    """A callback."""


def test_default_args_reach_every_task_and_dag_args_every_dag(folder: Path) -> None:
    made = dags(
        folder,
        default_args={"queue": "spark", "executor": "Celery", "on_failure_callback": told, "retries": 2},
        dag_args={"is_paused_upon_creation": True, "on_success_callback": told, "tags": ["finance"]},
    )
    assert len(made) == 15
    assert {name for name, dag in made.items() if dag.is_paused_upon_creation} == {
        "sums",
        "more",
        "tidemill.maintenance",
    }
    for dag in made.values():
        assert dag.on_success_callback is told
        assert {"tidemill", "finance"} <= dag.tags
        for task in dag.tasks:
            assert (task.queue, task.executor, task.retries, task.on_failure_callback) == ("spark", "Celery", 2, [told])


def test_form_is_paused_only_by_options_of_its_own_dag(folder: Path) -> None:
    paused = options(dag_args={"is_paused_upon_creation": True, "tags": ["ours"]})
    made = dags(folder, pipelines={"sums": paused, "more.rewind": paused})
    assert {name for name, dag in made.items() if dag.is_paused_upon_creation} == {"sums", "more.rewind"}
    assert "ours" in made["sums.backfill"].tags


def test_callbacks_of_the_project_run_beside_the_one_that_asks_people(folder: Path) -> None:
    from tidemill_airflow.tasks.asking import ask_people

    for chosen, found in ((told, [told]), ([told, told], [told, told]), (None, [])):
        made = dags(folder, ask_people=["sums"], default_args={"on_failure_callback": chosen})
        callbacks = {name: dag.tasks[0].on_failure_callback or [] for name, dag in made.items()}
        assert callbacks.pop("sums") == [ask_people, *found]
        assert all(each == found for each in callbacks.values())


def test_options_of_a_dag_go_before_those_of_its_pipeline_and_those_before_the_projects(folder: Path) -> None:
    made = dags(
        folder,
        default_args={"queue": "project", "retries": 1},
        dag_args={"tags": ["all"]},
        pipelines={
            "sums": options(default_args={"queue": "sums"}, dag_args={"tags": ["ours"]}),
            "sums.backfill": options(default_args={"queue": "big", "execution_timeout": timedelta(hours=1)}),
            "tidemill.maintenance": options(dag_args={"is_paused_upon_creation": True}),
        },
    )
    queues = {f"{dag}/{task.task_id}": task.queue for dag in made for task in made[dag].tasks}
    assert queues == {
        "more/batch": "project",
        **{f"more.{task}": "project" for task in FORMS},
        "sums/batch": "sums",
        **{f"sums.{task}": "sums" for task in FORMS},
        "sums.backfill/batches": "big",
        "tidemill.maintenance/more.fold": "project",
        "tidemill.maintenance/more": "project",
        "tidemill.maintenance/sums.fold": "sums",
        "tidemill.maintenance/sums": "sums",
    }
    assert {task.retries for dag in made.values() for task in dag.tasks} == {1}
    assert {"all", "ours"} <= made["sums.backfill"].tags
    assert "ours" not in made["more"].tags | made["tidemill.maintenance"].tags
    assert [name for name, dag in made.items() if dag.is_paused_upon_creation] == ["tidemill.maintenance"]


def test_time_that_a_task_may_take_does_not_limit_how_long_people_may_think(folder: Path) -> None:
    limit = timedelta(minutes=10)
    decide = dags(folder, default_args={"execution_timeout": limit})["sums.decide"]
    assert decide.get_task("decide").execution_timeout == limit
    ask = decide.get_task("ask")
    assert (ask.execution_timeout, ask.response_timeout) == (None, None)


def test_task_process_gets_the_options_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "sums.backfill")
    made = dags(folder, pipelines={"sums.backfill": options(default_args={"executor_config": {"pod_override": "big"}})})
    [task] = made["sums.backfill"].tasks
    assert task.executor_config == {"pod_override": "big"}


def test_start_and_end_of_a_dag_can_be_set(folder: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = dags(folder, dag_args={"start_date": start, "dagrun_timeout": timedelta(minutes=5)})
    assert {dag.start_date for dag in made.values()} == {start}
    assert made["sums"].dagrun_timeout == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"default_args": {"queu": "x"}}, r"default_args: Airflow has no argument `queu`\n  fix: did you mean `queue`"),
        ({"dag_args": {"start": 1}}, r"dag_args: Airflow has no argument `start`\n  fix: did you mean `start_date`"),
        ({"dag_args": {"zzz": 1}}, r"no argument `zzz`\n  fix: known: access_control, "),
        ({"dag_args": {"max_active_runs": 2}}, "`max_active_runs` cannot be changed: one batch of a pipeline"),
        ({"dag_args": {"catchup": True}}, "`catchup` cannot be changed: a batch reads on from the last commit"),
        ({"dag_args": {"schedule": "@daily"}}, r"`schedule` cannot be changed: .*Pipeline\(\.\.\., every"),
        ({"dag_args": {"default_args": {}}}, "give `default_args` beside `dag_args`"),
        ({"default_args": {"pool": "mine"}}, "`pool` cannot be changed: one slot in the pool"),
        ({"default_args": {"task_id": "mine"}}, "`task_id` cannot be changed"),
        ({"default_args": {"pipeline": "mine"}}, "Airflow has no argument `pipeline`"),
        ({"default_args": [("queue", "x")]}, "default_args: expected a dictionary"),
        ({"default_args": {1: "x"}}, "Airflow has no argument `1`"),
        ({"dag_args": {"tags": "finance"}}, r"`tags`: expected a list of texts, found 'finance'"),
        ({"dag_args": {"tags": [1]}}, "`tags`: expected a list of texts"),
        ({"default_args": {"depends_on_past": True}}, "`depends_on_past` must stay False: one failure would stop"),
        ({"default_args": {"wait_for_downstream": True}}, "`wait_for_downstream` must stay False"),
        ({"dag_args": {"max_active_tasks": 0}}, "dag_args: `max_active_tasks`: expected a whole number of at least 1"),
        ({"dag_args": {"max_active_tasks": True}}, "expected a whole number of at least 1, found True"),
        ({"default_args": {"max_active_tis_per_dag": 0}}, "expected a whole number of at least 1, found 0"),
        ({"default_args": {"retry_policy": "x"}}, "`retry_policy`: expected a RetryPolicy of airflow.sdk, found 'x'"),
        ({"default_args": {"retries": -5}}, "`retries`: expected a whole number of at least 0, found -5"),
        ({"default_args": {"retry_delay": "10 s"}}, "`retry_delay`: expected a timedelta or seconds"),
        ({"default_args": {"execution_timeout": 60}}, "`execution_timeout`: expected a timedelta above zero, found 60"),
        ({"dag_args": {"dagrun_timeout": timedelta(0)}}, "`dagrun_timeout`: expected a timedelta above zero"),
        ({"default_args": {"on_failure_callback": "tell"}}, "`on_failure_callback`: expected a function or a list"),
        (
            {"dag_args": {"on_success_callback": [print, "tell"]}},
            "`on_success_callback`: expected a function or a list",
        ),
        ({"dag_args": {"is_paused_upon_creation": "yes"}}, "`is_paused_upon_creation`: expected True or False"),
        ({"dag_args": {"start_date": "2026-01-01"}}, "`start_date`: expected a datetime"),
        ({"default_args": {"queue": ["spark"]}}, "`queue`: expected a text"),
    ],
)
def test_argument_that_is_unknown_or_must_stay_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        options(**given)


def test_values_that_mean_something_are_taken() -> None:
    from tidemill_airflow.dags.retrying import RETRYING

    options(
        default_args={
            **RETRYING,
            "depends_on_past": False,
            "queue": "spark",
            "on_failure_callback": [print],
            "on_retry_callback": print,
            "execution_timeout": None,
            "max_active_tis_per_dag": None,
        },
        dag_args={"tags": None, "is_paused_upon_creation": None, "max_active_tasks": 1, "on_failure_callback": None},
    ).over(options(dag_args={"tags": {"finance"}})).dag("sums", tags=["tidemill"])


def test_values_are_checked_for_arguments_that_airflow_has() -> None:
    from tidemill_airflow.dags.option_values import _EXPECTED, _PAST
    from tidemill_airflow.dags.options import known_arguments

    of_dags, of_tasks = known_arguments()
    assert of_dags | of_tasks >= _EXPECTED.keys() | _PAST


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pipelines": ["sales"]}, r"pipelines: expected a dictionary of DagOptions by name, found \['sales'\]"),
        ({"project": 5}, "dags_for: expected the folder of a project, found 5"),
        ({"project": ["/srv/shop"]}, "dags_for: expected the folder of a project"),
    ],
)
def test_arguments_of_another_type_are_refused_in_a_sentence(given: dict[str, Any], said: str) -> None:
    from tidemill_airflow.factory import dags_for

    with pytest.raises(ConfigError, match=said):
        dags_for(**given)


def test_value_that_airflow_refuses_is_told_with_the_dag(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"Airflow refuses the DAG `sums`: .*trigger"):
        dags(folder, pipelines={"sums": options(default_args={"trigger_rule": "never"})})


@pytest.mark.parametrize(
    ("name", "fix"),
    [("sum", "did you mean `sums`"), ("sums.backfil", "did you mean `sums.backfill`"), ("x", "known: ")],
)
def test_options_of_no_pipeline_are_refused_with_the_nearest_name(folder: Path, name: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=f"no pipeline and no DAG `{name}`\n  fix: {fix}"):
        dags(folder, pipelines={name: options()})


def test_options_that_are_no_options_are_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"pipelines: `sums`: expected DagOptions, found \{'queue': 'x'\}"):
        dags(folder, pipelines={"sums": {"queue": "x"}})


def test_options_of_a_pipeline_whose_file_is_broken_are_no_fault(folder: Path) -> None:
    (folder / "pipelines" / "more.py").write_text('Pipeline("more")\n(')
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made = dags(folder, pipelines={"more": options(), "more.backfill": options(default_args={"queue": "x"})})
    assert {"sums", "more"} < made.keys()
    assert len(warned) == 1


def test_options_of_a_pipeline_that_a_broken_file_may_declare_are_only_warned_of(folder: Path) -> None:
    (folder / "pipelines" / "more.py").write_text("Pipeline(f'{x}')\n(")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        made = dags(folder, pipelines={"orders": options()})
    assert {"sums", "more"} < made.keys()
    assert "no pipeline and no DAG `orders`" in str(warned[0].message)


def test_every_argument_that_cannot_be_changed_is_one_of_airflows() -> None:
    from tidemill_airflow.dags.options import FIXED_OF_DAGS, FIXED_OF_TASKS, known_arguments

    of_dags, of_tasks = known_arguments()
    assert of_dags >= FIXED_OF_DAGS.keys()
    assert of_tasks >= FIXED_OF_TASKS.keys()


def test_display_names_say_in_words_what_a_dag_does(folder: Path) -> None:
    names = {dag_id: dag.dag_display_name for dag_id, dag in dags(folder).items()}
    assert names["sums"] == "sums"
    assert names["sums.backfill"] == "sums: backfill"
    assert names["tidemill.maintenance"] == "tidemill: maintenance"
