"""Every file in the folders dags, parsed as Airflow's DAG processor parses it, on a machine without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidemill.project.project import Project
from tidemill_airflow.tasks.asked import (
    BACKFILL_FIELDS,
    DECISION_FIELDS,
    REBUILD_FIELDS,
    REPLAY_FIELDS,
    REWIND_FIELDS,
    VERIFY_FIELDS,
)

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, sys

HEAVY = ("pyspark", "delta", "great_expectations", "grpc", "pyarrow", "deltalake", "pandas")

class Blocked:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in HEAVY:
            raise ImportError(f"{name} was imported while a DAG file was parsed")

sys.meta_path.insert(0, Blocked())
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

folder = sys.argv[1]
bag = DagBag(folder)
dags = {
    name: {
        "file": dag.fileloc,
        "tags": sorted(dag.tags),
        "doc": dag.doc_md,
        "params": sorted(dag.params),
        "serialized": DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id,
        "tasks": {t.task_id: {"pool": t.pool, "retries": t.retries, "owner": t.owner} for t in dag.tasks},
    }
    for name, dag in bag.dags.items()
}
with open(sys.argv[2], "w") as answer:
    json.dump({"dags": dags, "import_errors": bag.import_errors, "warnings": bag.captured_warnings}, answer)
"""


def parse(folder: Path, home: Path) -> dict[str, Any]:
    """What Airflow finds in a folder of DAG files."""
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "TIDEMILL"))},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "PYTHONPATH": os.pathsep.join((str(ROOT / "spark_jobs"), str(ROOT / "plugins"))),
    }
    answer = home / "answer.json"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), str(answer)],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(answer.read_text())
    return found


pytestmark = pytest.mark.airflow


PROJECTS = {ROOT: {"page_views"}, ROOT / "spark_jobs" / "gallery": {"earthquakes", "login_bursts", "social_volume"}}
"""The projects of this checkout, with pipelines that each has."""


@pytest.fixture(scope="module", params=PROJECTS, ids=["reference", "gallery"])
def project(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture(scope="module")
def parsed(project: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return parse(project / "dags", tmp_path_factory.mktemp("airflow"))


def test_every_file_is_parsed_without_an_error_or_a_warning_where_spark_is_not_installed(
    parsed: dict[str, Any],
) -> None:
    assert parsed["import_errors"] == {}
    assert parsed["warnings"] == {}


FORMS = {
    "": {"max_batches", "max_records"},
    "backfill": BACKFILL_FIELDS,
    "decide": DECISION_FIELDS,
    "rebuild": REBUILD_FIELDS,
    "replay": REPLAY_FIELDS,
    "rewind": REWIND_FIELDS,
    "verify": VERIFY_FIELDS,
}
BESIDE = ("rebuild", "verify")
"""The kinds of DAGs whose tasks run beside the batches of their pipeline, without its slot."""
MAINTENANCE = "tidemill.maintenance"


def test_every_pipeline_of_a_project_has_its_dags_and_there_is_one_of_maintenance(
    project: Path, parsed: dict[str, Any]
) -> None:
    names = Project.load(project).pipeline_names()
    assert PROJECTS[project] <= set(names)
    kinds = [f"{name}.{kind}".rstrip(".") for name in names for kind in FORMS]
    assert sorted(parsed["dags"]) == sorted([*kinds, MAINTENANCE])


def test_every_dag_has_a_page_tags_and_a_form(parsed: dict[str, Any]) -> None:
    for name, dag in parsed["dags"].items():
        form = {"keep"} if name == MAINTENANCE else FORMS[name.partition(".")[2]]
        assert len(dag["doc"]) > (150 if "." in name else 500), name
        assert "tidemill" in dag["tags"], name
        assert set(dag["params"]) == form, name


def test_every_task_has_an_owner_retries_and_the_pool_of_its_pipeline(parsed: dict[str, Any]) -> None:
    for name, dag in parsed["dags"].items():
        for task_id, task in dag["tasks"].items():
            beside = name == MAINTENANCE and not task_id.endswith(".fold")
            beside |= name.partition(".")[2] in BESIDE or task_id == "ask"
            pipeline = (task_id if name == MAINTENANCE else name).partition(".")[0]
            pool = "default_pool" if beside else f"tidemill.{pipeline}"
            found = task["pool"], task["owner"] != "airflow", task["retries"] > 0
            assert found == (pool, True, task_id != "ask"), (name, task_id)


def test_every_dag_survives_its_way_through_airflows_database(parsed: dict[str, Any]) -> None:
    assert {name: dag["serialized"] for name, dag in parsed["dags"].items()} == {n: n for n in parsed["dags"]}


def test_every_dag_is_shown_with_the_file_that_made_it(project: Path, parsed: dict[str, Any]) -> None:
    files = {Path(dag["file"]).parent for dag in parsed["dags"].values()}
    assert files == {project / "dags"}


def a_project(folder: Path, declaration: str) -> dict[str, Any]:
    """What Airflow finds in the DAG file of a project with one pipeline file, `orders.py`."""
    for name in ("dags", "pipelines", "airflow"):
        (folder / name).mkdir()
    (folder / "tidemill.toml").write_text("")
    (folder / "dags" / "tidemill_dags.py").write_text((ROOT / "dags" / "tidemill_dags.py").read_text())
    (folder / "pipelines" / "orders.py").write_text(declaration)
    return parse(folder / "dags", folder / "airflow")


def test_wrong_declaration_is_a_dag_and_a_warning_that_say_what_to_change(tmp_path: Path) -> None:
    found = a_project(
        tmp_path, 'from tidemill import Pipeline\nwith Pipeline("orders", every="soon") as pipeline:\n    pass\n'
    )
    assert found["import_errors"] == {}
    [[warned]] = found["warnings"].values()
    assert sorted(found["dags"]) == ["orders", *(f"orders.{form}" for form in sorted(FORMS) if form)]
    dag = found["dags"]["orders"]
    assert (dag["serialized"], list(dag["tasks"])) == ("orders", ["batch"])
    for text in (warned, dag["doc"]):
        assert "orders.py:2: every: not a duration: 'soon'" in text
        assert "write a whole number and a unit" in text


def test_wrong_settings_are_an_import_error_that_says_what_to_change(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "airflow").mkdir()
    (tmp_path / "tidemill.toml").write_text("[lakes]\n")
    (tmp_path / "dags" / "tidemill_dags.py").write_text((ROOT / "dags" / "tidemill_dags.py").read_text())
    found = parse(tmp_path / "dags", tmp_path / "airflow")
    [error] = found["import_errors"].values()
    assert "tidemill.toml:1: there is no section [lakes]" in error
    assert "did you mean `lake`?" in error
    assert found["dags"] == {}


def test_dag_file_that_imports_spark_is_found_here(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "slow.py").write_text('"""An Airflow DAG."""\nimport pyspark\n')
    home = tmp_path / "airflow"
    home.mkdir()
    [error] = parse(tmp_path / "dags", home)["import_errors"].values()
    assert "pyspark was imported while a DAG file was parsed" in error
