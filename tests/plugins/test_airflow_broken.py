"""A pipeline that cannot run keeps a DAG, which says what is wrong; no other pipeline loses anything."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.projects import NO_SPARK, sums
from tidemill.core.errors import ConfigError, DeclarationError

OF_SUMS = [
    "sums",
    "sums.backfill",
    "sums.decide",
    "sums.rebuild",
    "sums.replay",
    "sums.rewind",
    "sums.verify",
    "tidemill.maintenance",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose pipeline `sums` is fine."""
    sums(tmp_path, NO_SPARK)
    return tmp_path


def broken_dags(name: str) -> list[str]:
    """The DAGs that a pipeline keeps; one that is called as its file has no forms."""
    return [name] if "." in name else [name, *(f"{name}.{each.partition('.')[2]}" for each in OF_SUMS[1:-1])]


def dags_of(folder: Path) -> tuple[dict[str, Any], str]:
    """The DAGs of a project, and what was warned of."""
    from tidemill_airflow.factory import dags_for

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dags = dags_for(folder)
    return dags, "\n".join(str(each.message) for each in told)


def write(folder: Path, name: str, change: Callable[[str], str]) -> None:
    text = (folder / "pipelines" / "pipeline.py").read_text()
    (folder / "pipelines" / name).write_text(change(text))


def a_syntax_error(folder: Path) -> str:
    write(folder, "new.py", lambda text: text.replace('"sums"', '"more"') + "x = (\n")
    return "more"


def an_import_that_fails(folder: Path) -> str:
    write(folder, "new.py", lambda _: "import nothing_of_that_name\n")
    return "new"


def a_file_that_leaves(folder: Path) -> str:
    write(folder, "new.py", lambda text: text.replace('"sums"', 'name="more"') + "raise SystemExit\n")
    return "more"


def a_wrong_contract(folder: Path) -> str:
    write(folder, "new.py", lambda text: text.replace('"sums"', '"more"'))
    (folder / "data_contracts" / "more.odcs.yaml").write_text("no contract")
    return "more"


def a_name_that_no_dag_can_have(folder: Path) -> str:
    write(folder, "new.py", lambda _: 'Pipeline("höher & weiter/\U0001f600")\n')
    return "höher___weiter__"


def a_copy_of_a_sound_pipeline(folder: Path) -> str:
    write(folder, "sums.py", lambda text: text + "x = (\n")
    return "sums.py"


FAULTS = [
    a_syntax_error,
    an_import_that_fails,
    a_file_that_leaves,
    a_wrong_contract,
    a_name_that_no_dag_can_have,
    a_copy_of_a_sound_pipeline,
]


@pytest.mark.parametrize("spoil", FAULTS)
def test_fault_takes_no_dag_of_others_away_and_leaves_one_that_says_what_is_wrong(
    folder: Path, spoil: Callable[[Path], str]
) -> None:
    broken = spoil(folder)
    dags, told = dags_of(folder)
    assert sorted(dags) == sorted([*OF_SUMS, *broken_dags(broken)])
    assert [task.task_id for task in dags["tidemill.maintenance"].tasks] == ["sums.fold", "sums"]
    assert "does not run: " in told
    dag = dags[broken]
    assert set(dag.tags) == {"tidemill", "tidemill:broken"}
    assert not dag.timetable.can_be_scheduled
    [task] = dag.tasks
    assert task.message in told
    assert all(" ".join(line.removeprefix("  fix: ").split()) in dag.doc_md for line in task.message.splitlines())


@pytest.mark.parametrize("spoil", FAULTS)
def test_task_process_gets_the_same_dag_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], str]
) -> None:
    broken = spoil(folder)
    whole, _ = dags_of(folder)
    for wanted in (*broken_dags(broken), *OF_SUMS):
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)
        alone, told = dags_of(folder)
        assert (list(alone), told) == ([wanted], "")
        assert alone[wanted].doc_md == whole[wanted].doc_md
        assert alone[wanted].task_ids == whole[wanted].task_ids


def test_task_of_a_broken_pipeline_fails_without_a_retry_and_names_file_line_and_fix(folder: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    broken = a_syntax_error(folder)
    [task] = dags_of(folder)[0][broken].tasks
    assert task.task_id == "batch"
    with pytest.raises(AirflowFailException, match=r"new\.py:\d+: SyntaxError.*\n  fix: correct line \d+"):
        task.execute({})


def test_project_of_one_broken_pipeline_keeps_its_dags(folder: Path) -> None:
    sound, _ = dags_of(folder)
    write(folder, "pipeline.py", lambda text: text + "x = (\n")
    dags, told = dags_of(folder)
    assert sorted(dags) == OF_SUMS[:-1]
    for dag_id, dag in dags.items():
        [task] = dag.tasks
        assert task.task_id == sound[dag_id].tasks[-1].task_id
        assert "pipeline.py" in task.message
    assert "the pipeline sums does not run" in told


def test_both_of_two_pipelines_with_one_name_are_one_broken_dag(folder: Path) -> None:
    write(folder, "new.py", str)
    dags, _ = dags_of(folder)
    assert sorted(dags) == OF_SUMS[:-1]
    assert "a second pipeline is called `sums`" in dags["sums"].tasks[0].message


def test_wrong_contract_that_no_pipeline_uses_changes_nothing(folder: Path) -> None:
    (folder / "data_contracts" / "unused.odcs.yaml").write_text("no contract")
    dags, told = dags_of(folder)
    assert (sorted(dags), told) == (sorted(OF_SUMS), "")


def test_error_that_nobody_foresaw_stops_one_pipeline_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "new.py", lambda text: text.replace('"sums"', '"more"').replace('publish("sums', 'publish("more'))
    from tidemill.project.project import Project

    bound = Project.declared

    def declared(project: Project, name: str) -> Any:
        if name == "more":
            raise ZeroDivisionError("a defect")
        return bound(project, name)

    monkeypatch.setattr(Project, "declared", declared)
    dags, told = dags_of(folder)
    assert "ZeroDivisionError: a defect" in dags["more"].tasks[0].message
    assert set(OF_SUMS) <= dags.keys()
    assert "the pipeline more does not run" in told


def test_project_without_pipelines_has_no_dags_and_says_so(folder: Path) -> None:
    shutil.rmtree(folder / "pipelines")
    dags, told = dags_of(folder)
    assert dags == {}
    assert "there are no DAGs" in told


def test_wrong_settings_are_an_error_with_the_line(folder: Path) -> None:
    (folder / "tidemill.toml").write_text("[lakes]\n")
    with pytest.raises(ConfigError, match=r"tidemill\.toml:1: there is no section \[lakes\]"):
        dags_of(folder)


def test_page_of_a_broken_pipeline_shows_any_text_as_it_is() -> None:
    from tidemill_airflow.dags.broken import Broken, broken_dag
    from tidemill_airflow.dags.options import DagOptions

    dag = broken_dag(Broken.of("more", DeclarationError("a `` b\n# no title", fix="look")), DagOptions())
    assert "``` a `` b ```\n\n`# no title`\n\n**What to do:** `look`\n" in dag.doc_md
    assert dag.description == "a `` b # no title"


@pytest.mark.filterwarnings("ignore:the pipeline more does not run")
def test_broken_dag_keeps_the_queue_and_the_tags_that_the_project_chose(folder: Path) -> None:
    from tidemill_airflow.factory import DagOptions, dags_for

    broken = a_syntax_error(folder)
    chosen = {broken: DagOptions(default_args={"queue": "spark"})}
    dag = dags_for(folder, dag_args={"tags": ["finance"]}, pipelines=chosen)[broken]
    assert dag.tasks[0].queue == "spark"
    assert set(dag.tags) == {"finance", "tidemill", "tidemill:broken"}
