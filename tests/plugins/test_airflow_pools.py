"""Pools and priorities: what keeps the batches of one pipeline in a row, live ones first."""

from __future__ import annotations

import json
import runpy
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
SCHEDULED, BACKFILL, MANUAL = "scheduled__2026-01-01T00:00", "backfill__2026-01-01T00:00", "manual__2026-01-01T00:00"


class OnlyRunAndTask:
    """A task instance that knows its run's id and its task, and fails the test for any other question."""

    def __init__(self, run_id: str, priority_weight: int) -> None:
        self.run_id, self.task = run_id, SimpleNamespace(priority_weight=priority_weight)


@pytest.fixture
def session() -> Iterator[Any]:
    """A session of an empty pool table."""
    from airflow.models import import_all_models
    from airflow.models.pool import Pool
    from airflow.models.team import Team
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    import_all_models()

    engine = create_engine("sqlite://")
    Pool.metadata.create_all(engine, tables=[Team.__table__, Pool.__table__])
    with Session(engine) as session:
        yield session
    engine.dispose()


def slots(session: Any) -> dict[str, int]:
    from airflow.models.pool import Pool
    from sqlalchemy import select

    return {pool.pool: pool.slots for pool in session.scalars(select(Pool))}


def a_run(session: Any, *pools: str) -> Any:
    """A run as the scheduler hands it to listeners: attached to its session, with its serialized DAG."""
    from airflow.models.pool import Pool

    run = Pool(pool="stands for the run", slots=0, include_deferred=False)
    session.add(run)
    session.flush()
    run.dag = SimpleNamespace(tasks=[SimpleNamespace(pool=pool) for pool in pools])  # type: ignore[attr-defined]
    run.backfill_id = None  # type: ignore[attr-defined]
    return run


def test_backfill_weighs_less_than_every_live_run_of_the_same_task() -> None:
    from tidemill_airflow.scheduler.priority import LiveBeforeBackfill

    def weight(run_id: str) -> int:
        return LiveBeforeBackfill().get_weight(OnlyRunAndTask(run_id, 5))  # type: ignore[arg-type]

    assert weight(SCHEDULED) == weight(MANUAL) == 5
    assert weight(BACKFILL) == 4


def test_missing_pools_are_added_with_one_slot(session: Any) -> None:
    from tidemill_airflow.scheduler.pools import add_missing_pools

    assert add_missing_pools(["tidemill.b", "tidemill.a"], session) == ("tidemill.a", "tidemill.b")
    assert slots(session) == {"tidemill.a": 1, "tidemill.b": 1}


def test_pool_that_somebody_changed_stays_as_it_is(session: Any) -> None:
    from airflow.models.pool import Pool

    from tidemill_airflow.scheduler.pools import add_missing_pools

    session.add(Pool(pool="tidemill.a", slots=4, include_deferred=True))
    assert add_missing_pools(["tidemill.a"], session) == ()
    assert slots(session) == {"tidemill.a": 4}


@pytest.mark.parametrize(
    ("dialect", "clause"),
    [("sqlite", "INSERT OR IGNORE"), ("mysql", "INSERT IGNORE"), ("postgresql", "ON CONFLICT DO NOTHING")],
)
def test_two_schedulers_may_add_the_same_pool_at_once(dialect: str, clause: str) -> None:
    from sqlalchemy.dialects import mysql, postgresql, sqlite

    from tidemill_airflow.scheduler.pools import _insert_if_absent

    dialects = {"sqlite": sqlite, "mysql": mysql, "postgresql": postgresql}
    statement = _insert_if_absent("tidemill.a", dialect)
    assert clause in str(statement.compile(dialect=dialects[dialect].dialect()))


def test_adding_a_pool_that_appears_meanwhile_changes_nothing(session: Any) -> None:
    from tidemill_airflow.scheduler.pools import _insert_if_absent

    for _ in range(2):
        session.execute(_insert_if_absent("tidemill.a", "sqlite"))
    assert slots(session) == {"tidemill.a": 1}


def test_run_that_starts_gets_its_pool_in_the_schedulers_own_transaction(session: Any) -> None:
    from sqlalchemy import event

    from tidemill_airflow.scheduler.listener import on_dag_run_running

    def forbidden(_: object) -> None:
        raise AssertionError("the scheduler forbids commits here")

    run = a_run(session, "tidemill.page_views", "default_pool")
    event.listen(session, "before_commit", forbidden)
    on_dag_run_running(run)
    assert "tidemill.page_views" in slots(session)
    assert "default_pool" not in slots(session)


def test_run_of_another_dag_asks_the_database_nothing(session: Any) -> None:
    from sqlalchemy import event

    from tidemill_airflow.scheduler.listener import on_dag_run_running

    run, statements = a_run(session, "default_pool"), []
    event.listen(session.get_bind(), "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    on_dag_run_running(run)
    assert statements == []


def test_plugin_registers_the_strategy_and_the_listener_under_the_names_that_airflow_looks_up() -> None:
    from airflow.plugins_manager import is_valid_plugin

    from tidemill_airflow.plugin import TidemillPlugin
    from tidemill_airflow.scheduler import listener
    from tidemill_airflow.scheduler.priority import LiveBeforeBackfill

    assert is_valid_plugin(TidemillPlugin)
    assert TidemillPlugin.priority_weight_strategies == [LiveBeforeBackfill]
    assert TidemillPlugin.listeners == [listener]


@pytest.mark.parametrize(("installed", "registers"), [(True, False), (False, True)])
def test_plugins_folder_registers_the_plugin_unless_the_installed_package_did(
    monkeypatch: pytest.MonkeyPatch, installed: bool, registers: bool
) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ["tidemill"] if installed else [])
    assert ("TidemillPlugin" in runpy.run_path(str(PLUGINS / "tidemill_plugin.py"))) is registers


# Airflow's own use of a deprecated name in pathspec.
@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
def test_airflow_finds_one_file_in_the_plugins_folder() -> None:
    from airflow._shared.module_loading import find_path_from_directory

    found = find_path_from_directory(str(PLUGINS), ".airflowignore", "glob")
    assert [Path(path).name for path in found if path.endswith(".py")] == ["tidemill_plugin.py"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two pipelines, which need no contract to be counted."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "tidemill.toml").write_text("")
    for name in ("orders", "visits"):
        declaration = (
            f'from tidemill import Pipeline\nwith Pipeline("{name}", every="1 minute") as pipeline:\n'
            f'    pipeline.read("{name}", contract="{name}").publish("all_{name}", contract="all_{name}")\n'
        )
        (tmp_path / "pipelines" / f"{name}.py").write_text(declaration)
    return tmp_path


def test_command_adds_the_pools_of_a_project_once(
    project: Path, session: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tidemill_airflow.__main__ import main

    monkeypatch.setattr("tidemill_airflow.__main__.create_session", lambda: nullcontext(session))
    assert [main(["--project", str(project)]) for _ in range(2)] == [0, 0]
    assert slots(session) == {"tidemill.orders": 1, "tidemill.visits": 1}
    first, second = capsys.readouterr().out.splitlines()
    assert first == "2 of 2 pools added: tidemill.orders, tidemill.visits"
    assert second == "0 of 2 pools added: all were there"


def test_command_prints_pools_as_airflow_imports_them(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tidemill_airflow.__main__ import main

    assert main(["--project", str(project), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.keys() == {"tidemill.orders", "tidemill.visits"}
    assert printed["tidemill.orders"]["slots"] == 1
    assert printed["tidemill.orders"].keys() == {"slots", "description", "include_deferred"}


def test_command_tells_a_wrong_folder_from_a_stack_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tidemill_airflow.__main__ import main

    assert main(["--project", str(tmp_path)]) == 5
    assert "there is no tidemill.toml" in capsys.readouterr().err


def test_doctor_says_what_becomes_of_the_pools(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemill.project.project import Project
    from tidemill_airflow.local.look import look

    home, file = tmp_path / "home", tmp_path / "home" / "airflow.db"
    home.mkdir()
    (home / "airflow.cfg").touch()
    monkeypatch.setenv("AIRFLOW_HOME", str(home))
    monkeypatch.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{file}")

    def row() -> tuple[str, str]:
        found = {each.name: each for each in look(Project.load(project), ask=True)}["airflow pools"]
        return found.state, f"{found.found}; {found.fix}"

    def run(*statements: str) -> None:
        with closing(sqlite3.connect(file)) as database:
            for statement in statements:
                database.execute(statement)
            database.commit()

    assert row() == ("note", f"{file} is not there yet; airflow db migrate")
    file.touch()
    assert row() == ("note", f"sqlite:///{file} has no tables of Airflow yet; airflow db migrate")
    run("CREATE TABLE slot_pool (pool TEXT, slots INTEGER)", "INSERT INTO slot_pool VALUES ('tidemill.orders', 1)")
    assert row()[0] == "note"
    assert "missing: tidemill.visits" in row()[1]
    run("INSERT INTO slot_pool VALUES ('tidemill.visits', 2)")
    assert "tidemill.visits has 2 slots" in row()[1]
    run("UPDATE slot_pool SET slots = 1")
    assert row() == ("ok", "tidemill.orders, tidemill.visits; ")
    file.write_bytes(b"no database" * 100)
    assert row() == ("problem", f"sqlite:///{file} cannot be read: file is not a database; airflow db check")
