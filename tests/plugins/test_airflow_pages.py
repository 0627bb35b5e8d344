"""The pages in Airflow's own API server, with its cookie, its roles and its database: Airflow as a library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from pages.street import a_street
from support.projects import ROOT

pytestmark = pytest.mark.airflow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every answer to everybody; asked in a process of its own, which is an API server."""
    folder = tmp_path_factory.mktemp("pages")
    project = a_street(folder / "street", batches=2)
    answer, home = folder / "answer.json", folder / "home"
    home.mkdir()
    settings = {
        "CORE__DAGS_FOLDER": str(folder / "dags"),
        "CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "CORE__LOAD_EXAMPLES": "False",
        "CORE__SIMPLE_AUTH_MANAGER_USERS": "viewer:viewer,user:user,admin:admin",
        "API__BASE_URL": "http://testserver/airflow",
        "API_AUTH__JWT_SECRET": "a secret of tests that is long enough for its algorithm, which wants 64 bytes",
        "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "TIDEMILL__PROJECTS": str(project.folder),
    }
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "_AIRFLOW", "TIDEMILL"))}
    environ |= {f"AIRFLOW__{name}": value for name, value in settings.items()} | {"AIRFLOW_HOME": str(home)}
    environ["PYTHONPATH"] = os.pathsep.join(str(ROOT / each) for each in ("spark_jobs", "plugins", "tests"))
    program = ROOT / "tests" / "plugins" / "airflow_pages.py"
    done = subprocess.run(
        [sys.executable, str(program), str(project.folder), str(answer)],
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    result: dict[str, Any] = json.loads(answer.read_text())
    return result


def test_anonymous_people_get_no_page(found: dict[str, Any]) -> None:
    answers = {name: code for name, code in found["answers"].items() if name.endswith(" anonymous")}
    assert len(answers) > 10
    assert set(answers.values()) == {401}


def test_viewers_look_and_may_start_nothing(found: dict[str, Any]) -> None:
    answers = {name: code for name, code in found["answers"].items() if name.endswith(" viewer")}
    assert {code for name, code in answers.items() if name.startswith("GET")} == {200, 307}
    assert {code for name, code in answers.items() if name.startswith("POST")} == {403}
    assert not found["actions"]["viewer"]["offered"]


@pytest.mark.parametrize("who", ["user", "admin"])
def test_users_act_only_with_the_token_of_a_page(found: dict[str, Any], who: str) -> None:
    action = found["actions"][who]
    assert (action["without"], action["elsewhere"], action["with"]) == (403, 403, 303), action


def test_an_action_is_a_run_in_the_name_of_its_user(found: dict[str, Any]) -> None:
    form = {"records": "quarantine", "rule": "not an event", "why": "mended"}
    runs = {user: conf for dag, user, conf in found["runs"] if dag == "sums.replay"}
    assert set(runs) == {"user", "admin"}
    for user, conf in runs.items():
        assert {**form, "by": user}.items() <= conf.items()


def test_airflow_takes_what_plans_send(found: dict[str, Any]) -> None:
    refused = {action: answer for action, answer in found["plans"].items() if answer[0] != 303}
    assert set(refused) == {"paused"}
    assert (refused["paused"][0], "is paused" in refused["paused"][1]) == (409, True)
    runs = {dag: conf for dag, user, conf in found["runs"] if user == "user"}
    said = {"mode": "do it", "why": "a reason", "by": "user"}
    assert {**said, "to": 1}.items() <= runs["sums.rewind"].items()
    assert {**said, "accept_loss": True, "batch_records": 7}.items() <= runs["sums.rebuild"].items()
    assert {**said, "from_offsets": "events-0:0"}.items() <= runs["sums.backfill"].items()
    assert runs["sums.verify"]["sample"] == 12.5


def test_the_page_is_in_the_navigation_and_a_tab_of_dag_and_run(found: dict[str, Any]) -> None:
    views = {view["destination"]: view["href"] for view in found["views"]}
    assert views == {
        "nav": "tidemill/",
        "dag": "tidemill/dags/{DAG_ID}",
        "dag_run": "tidemill/dags/{DAG_ID}/runs/{RUN_ID}",
    }
    assert "pipelines/strict" in found["listed"]


def test_every_route_and_role(found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print("\n" + "\n".join(f"{code} {name}" for name, code in found["answers"].items()))
    assert len(found["answers"]) >= 50
