"""The files of `tidemill airflow install`: written once, replaced only as long as nobody changed them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError
from tidemill_airflow.local.install import (
    DAGS,
    SETTINGS,
    Outcome,
    airflow_home,
    dags_folder,
    install,
    install_dags,
    install_settings,
    is_installed,
)


def outcomes(home: Path, project: Path) -> list[Outcome]:
    return [each.outcome for each in install(home, project, dags=home / "dags")]


def test_first_call_writes_and_the_second_changes_nothing(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "shop"
    assert outcomes(home, project) == [Outcome.WRITTEN, Outcome.WRITTEN]
    files = [home / "config" / SETTINGS, home / "dags" / DAGS]
    before = [(file.read_text(), file.stat().st_mtime_ns) for file in files]
    assert outcomes(home, project) == [Outcome.UNCHANGED, Outcome.UNCHANGED]
    assert [(file.read_text(), file.stat().st_mtime_ns) for file in files] == before
    assert is_installed(files[0])


@pytest.mark.parametrize("name", ["shop", "it's", 'a "quoted" one', "back\\slash", "наш", "new\nline"])
def test_dag_file_is_python_that_names_the_project(tmp_path: Path, name: str) -> None:
    project = tmp_path / name
    text = install_dags(tmp_path / "dags", project).path.read_text()
    call = next(
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant) and node.value == str(project)
    )
    assert call.value == str(project)
    assert install_dags(tmp_path / "dags", project).outcome is Outcome.UNCHANGED


def test_file_of_an_earlier_version_that_nobody_changed_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr("tidemill_airflow.local.install._WARM", "import pandas\n")
        assert install_settings(tmp_path).outcome is Outcome.WRITTEN
    assert not is_installed(tmp_path / "config" / SETTINGS)
    assert install_settings(tmp_path).outcome is Outcome.REPLACED
    assert is_installed(tmp_path / "config" / SETTINGS)


def test_file_that_a_person_changed_stays_and_the_difference_is_told(tmp_path: Path) -> None:
    file = install_settings(tmp_path).path
    text = file.read_text().replace("warm_scheduler()\n", "print('mine')\n")
    file.write_text(text)
    found = install_settings(tmp_path)
    assert found.outcome is Outcome.DIFFERS
    assert {"-print('mine')", "+warm_scheduler()"} <= set(found.differs)
    assert file.read_text() == text


def test_file_of_a_person_that_does_what_is_needed_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config" / SETTINGS
    file.parent.mkdir()
    file.write_text("from tidemill_airflow.scheduler.warm_path import warm_scheduler\nwarm_scheduler()\nmine = 1\n")
    assert install_settings(tmp_path).outcome is Outcome.YOURS


def test_dag_file_of_another_project_is_not_replaced(tmp_path: Path) -> None:
    first = install_dags(tmp_path / "dags", tmp_path / "shop")
    text = first.path.read_text()
    assert install_dags(tmp_path / "dags", tmp_path / "web").outcome is Outcome.DIFFERS
    assert first.path.read_text() == text


def test_dag_file_of_a_new_project_does_what_is_needed_in_its_own_folder(tmp_path: Path) -> None:
    own = tmp_path / "shop" / "dags"
    own.mkdir(parents=True)
    (own / DAGS).write_text("globals().update(dags_for(Path(__file__).resolve().parents[1]))\n")
    assert install_dags(own, tmp_path / "shop").outcome is Outcome.YOURS
    assert install_dags(own, tmp_path / "web").outcome is Outcome.DIFFERS


def test_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a file")
    with pytest.raises(ConfigError, match=r"config/airflow_local_settings\.py: cannot be written"):
        install_settings(tmp_path)


def test_dags_folder_is_that_of_the_environment_else_of_the_configuration_else_of_the_home(tmp_path: Path) -> None:
    assert dags_folder(tmp_path, {}) == tmp_path / "dags"
    (tmp_path / "airflow.cfg").write_text("[core]\ndags_folder = /srv/dags\nformat = %%(x)s\n")
    assert dags_folder(tmp_path, {}) == Path("/srv/dags")
    assert dags_folder(tmp_path, {"AIRFLOW__CORE__DAGS_FOLDER": "/else"}) == Path("/else")
    for damaged in ("dags_folder", "\0", "[core"):
        (tmp_path / "airflow.cfg").write_text(damaged)
        assert dags_folder(tmp_path, {}) == tmp_path / "dags"


def test_home_is_that_of_the_environment() -> None:
    assert airflow_home({"AIRFLOW_HOME": "/srv/airflow"}) == Path("/srv/airflow")
    assert airflow_home({}) == Path.home() / "airflow"
