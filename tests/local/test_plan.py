"""What `tidemill up` plans to start, and what it refuses before anything starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.projects import ROOT
from tidemill.core.errors import ConfigError
from tidemill.project.template import make_project
from tidemill_airflow.local.environment import LocalAirflow, check_database
from tidemill_airflow.local.home import Home
from tidemill_airflow.local.look import Row, look
from tidemill_airflow.local.plan import Plan, Wanted, make_plan


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project that `tidemill init` makes."""
    monkeypatch.setenv("TIDEMILL_JARS", str(ROOT / ".tidemill" / "jars"))
    monkeypatch.delenv("TIDEMILL_SPARK_REMOTE", raising=False)
    make_project(str(tmp_path / "shop"))
    return tmp_path / "shop"


def planned(wanted: Wanted, tmp_path: Path) -> Plan:
    home = Home(tmp_path / "home")
    home.make()
    return make_plan(wanted, home)


def names(plan: Plan) -> list[str]:
    return [part.name for part in (*plan.servers, *plan.feeds, *plan.parts)]


AIRFLOW = ["api-server", "dag-processor", "scheduler", "triggerer"]


def test_project_of_a_user_has_a_server_of_spark_and_no_generator(shop: Path, tmp_path: Path) -> None:
    plan = planned(Wanted(project=str(shop)), tmp_path)
    assert names(plan) == ["connect", *AIRFLOW]
    assert plan.airflow.dags == shop / "dags"
    environ = plan.parts[0].environ
    assert environ["TIDEMILL_SPARK_REMOTE"] == plan.remote == f"sc://127.0.0.1:{plan.ports['connect']}"


def test_project_with_a_server_of_its_own_gets_no_other(shop: Path, tmp_path: Path) -> None:
    with (shop / "tidemill.toml").open("a") as settings:
        settings.write('\n[spark]\nremote = "sc://spark:15002"\n')
    plan = planned(Wanted(project=str(shop)), tmp_path)
    assert names(plan) == AIRFLOW
    assert "TIDEMILL_SPARK_REMOTE" not in plan.parts[0].environ
    assert plan.remote == "sc://spark:15002"


def test_checkout_has_a_generator_unless_it_is_not_wanted(shop: Path, tmp_path: Path) -> None:
    assert "generator" in names(planned(Wanted(project=str(ROOT)), tmp_path))
    assert "generator" not in names(planned(Wanted(project=str(ROOT), generator=False), tmp_path))


def test_generator_for_a_project_without_its_pipeline_is_refused(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no pipeline `page_views`"):
        planned(Wanted(project=str(shop), generator=True), tmp_path)


def test_pipelines_over_kafka_have_a_lake_and_dags_of_their_own(shop: Path, tmp_path: Path) -> None:
    plan = planned(Wanted(project=str(ROOT), kafka=True), tmp_path)
    assert names(plan)[:2] == ["kafka", "connect"]
    assert plan.airflow.dags == tmp_path / "home" / "dags"
    assert plan.project.settings.kafka == {"kafka": f"127.0.0.1:{plan.ports['kafka']}"}
    assert Path(plan.project.settings.lake).is_relative_to(tmp_path)
    assert plan.dags == ("page_views",)


def test_project_over_kafka_keeps_its_other_settings(shop: Path, tmp_path: Path) -> None:
    text = (shop / "tidemill.toml").read_text().replace('"7 days"', '"3 days"')
    (shop / "tidemill.toml").write_text(text + '\n[spark.conf]\n"spark.ui.enabled" = "true"\n')
    settings = planned(Wanted(project=str(shop), kafka=True), tmp_path).project.settings
    assert (settings.keep.days, settings.spark_conf["spark.ui.enabled"]) == (3, "true")


def test_project_over_kafka_has_a_broker_already(shop: Path, tmp_path: Path) -> None:
    text = (shop / "tidemill.toml").read_text().replace('path = "log"', 'kafka = "broker:9092"')
    (shop / "tidemill.toml").write_text(text)
    with pytest.raises(ConfigError, match="the project's log is Kafka already"):
        planned(Wanted(project=str(shop), kafka=True), tmp_path)


def test_jars_that_are_missing_are_named_before_anything_starts(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_JARS", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="jars that Spark needs are missing"):
        planned(Wanted(project=str(shop)), tmp_path)


@pytest.mark.parametrize("url", ["postgres", "oracle://u:secret@h/d", "://", "mysql://u:secret@h/d"])
def test_database_that_airflow_cannot_use_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match="--database") as found:
        check_database(url)
    assert "secret" not in str(found.value)


def test_database_whose_client_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill_airflow.local.environment.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs the packages psycopg2, asyncpg"):
        check_database("postgresql://user:secret@host/airflow")
    monkeypatch.setattr("tidemill_airflow.local.environment.find_spec", lambda name: name)
    check_database("postgresql://user:secret@host/airflow")


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("postgresql://u@h:1/d?x=postgresql://", "postgresql+psycopg2://u@h:1/d?x=postgresql://"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_airflow_takes_the_driver_that_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, taken: str
) -> None:
    monkeypatch.setattr("tidemill_airflow.local.environment.find_spec", lambda name: name)
    environ = LocalAirflow(home=Home(tmp_path), dags=tmp_path, port=1, database=url).environ({})
    assert environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == taken


def test_environment_has_nothing_of_another_airflow_but_its_connections(tmp_path: Path) -> None:
    home = Home(tmp_path)
    theirs = {
        "AIRFLOW_HOME": "/srv",
        "AIRFLOW__API__PORT": "80",
        "AIRFLOW__API__HOST": "0.0.0.0",
        "_AIRFLOW__AS_LIBRARY": "1",
    }
    kept = {"AIRFLOW_CONN_S3": "s3://", "AIRFLOW_VAR_A": "1", "HOME": "/root"}
    found = LocalAirflow(home=home, dags=tmp_path / "dags", port=1234).environ({**theirs, **kept})
    assert found["AIRFLOW_HOME"] == str(tmp_path)
    assert (found["AIRFLOW__API__HOST"], found["AIRFLOW__API__PORT"]) == ("127.0.0.1", "1234")
    assert "_AIRFLOW__AS_LIBRARY" not in found
    assert kept.items() <= found.items()


def test_doctor_looks_at_the_airflow_that_the_environment_names(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemill.project.project import Project

    home = tmp_path / "airflow_home"
    monkeypatch.setenv("AIRFLOW_HOME", str(home))

    def rows() -> dict[str, Row]:
        return {row.name: row for row in look(Project.load(shop), ask=False)}

    assert (rows()["airflow home"].state, home.exists()) == ("note", False)
    home.mkdir()
    found = rows()
    assert [found[f"airflow {what}"].state for what in ("constraints", "dags folder", "warm path")] == [
        "ok",
        "note",
        "note",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tidemill_airflow.local", "install", "--project", str(shop)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split(" ", 1)[1] for line in done.stdout.splitlines()] == ["written", "written"]
    found = rows()
    assert [found[f"airflow {what}"].state for what in ("home", "dags folder", "warm path")] == ["ok", "ok", "ok"]


def test_commands_name_what_to_install_where_airflow_is_missing(shop: Path) -> None:
    program = (
        "import sys, importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'airflow' else find(name, *rest)\n"
        "from tidemill.cli.main import main; main(sys.argv[1:])"
    )
    for words in (["up"], ["down"], ["airflow", "install"]):
        command = [sys.executable, "-c", program, "--project", str(shop), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 5, done.stderr
        assert f"tidemill {' '.join(words)}: airflow cannot be found" in done.stderr
        assert "pip install 'tidemill[airflow]'" in done.stderr


def test_doctor_of_a_project_has_rows_about_airflow_and_loads_it_only_when_asked(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "none"))
    command = [sys.executable, "-m", "tidemill.cli.main", "--project", str(shop), "doctor", "--no-spark", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows["airflow constraints"]["state"] == "ok"
    assert rows["airflow home"]["state"] == "note"
    assert "airflow plugin loaded" not in rows
