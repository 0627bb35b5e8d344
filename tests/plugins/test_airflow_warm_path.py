"""The warm path imports in the scheduler, and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidemill_airflow.local.install import install_settings
from tidemill_airflow.scheduler.warm_path import warm

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, runpy, sys
from tidemill_airflow.scheduler.warm_path import MODULES
sys.argv = json.loads(sys.argv[2])
sys.modules.update({name: None for name in ("deltalake", "polars")})
sys.meta_path.insert(0, type("Seen", (), {"find_spec": staticmethod(lambda name, *_: seen.append(name))}))
seen = []
settings = runpy.run_path("SETTINGS")
print(json.dumps({"seen": [n for n in seen if n in MODULES], "all": settings["__all__"]}))
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that `tidemill airflow install` writes."""
    return install_settings(tmp_path_factory.mktemp("airflow_home")).path


def asked_for(settings: Path, *argv: str) -> dict[str, list[str]]:
    """Which of the warm modules a process with these arguments looks for, when two of them are not installed."""
    program = PROGRAM.replace("SETTINGS", str(settings))
    done = subprocess.run(
        [sys.executable, "-c", program, "-", json.dumps(argv)], capture_output=True, text=True, check=True
    )
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("command", ["dag-processor", "api-server", "triggerer", "celery", "tasks"])
def test_processes_that_fork_no_tasks_import_nothing(settings: Path, command: str) -> None:
    assert asked_for(settings, "/usr/bin/airflow", command, "scheduler")["seen"] == []


def test_process_without_arguments_imports_nothing(settings: Path) -> None:
    assert asked_for(settings, "/usr/bin/airflow")["seen"] == []


@pytest.mark.parametrize(
    "command", [["scheduler"], pytest.param(["celery", "worker", "--queues", "spark"], marks=pytest.mark.long)]
)
def test_who_forks_tasks_imports_what_a_batch_needs_and_survives_what_is_not_installed(
    settings: Path, command: list[str]
) -> None:
    seen = asked_for(settings, "/usr/bin/airflow", *command)["seen"]
    assert {"pandas", "great_expectations", "pyspark.sql.connect.session"} <= set(seen)


def test_what_needs_an_extra_that_is_not_installed_is_no_news(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    for name, needs in (("asks_for_kafka", "confluent_kafka"), ("asks_for_more", "not_to_be_had")):
        (tmp_path / f"{name}.py").write_text(f"import {needs}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    assert warm(["asks_for_kafka", "asks_for_more"], []) == ("asks_for_more",)
    assert "asks_for_kafka" not in caplog.text


def test_settings_leave_no_name_in_airflow(settings: Path) -> None:
    assert asked_for(settings, "/usr/bin/airflow")["all"] == []


WARMED = """
import json, sys
from tidemill_airflow.scheduler.warm_path import warm
missing, before = warm(), set(sys.modules)
from tidemill.project.project import Project
project = Project.load(sys.argv[1])
for name in project.pipeline_names():
    project.pipeline(name)
import tidemill.run.loop, tidemill.run.sessions
more = {name.partition(".")[0] for name in set(sys.modules) - before}
print(json.dumps({"missing": missing, "more": sorted(more), "duckdb": "duckdb" in sys.modules}))
"""


def test_nothing_is_left_to_import_where_a_batch_is_planned_and_nothing_is_there_that_no_fork_survives() -> None:
    done = subprocess.run([sys.executable, "-c", WARMED, str(ROOT)], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["missing"], found["duckdb"]) == ([], False)
    assert set(found["more"]) <= {"tidemill_pipelines", "encodings"}
