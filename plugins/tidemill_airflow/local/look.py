"""What `tidemill doctor` says about the Airflow beside a project. It only looks: nothing is made or changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.local.environment import LocalAirflow
from tidemill_airflow.local.home import Home
from tidemill_airflow.local.install import SETTINGS, airflow_home, dags_folder, is_installed
from tidemill_airflow.naming import pool_of

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

_INSTALL = "tidemill airflow install"
_MOST_FILES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One finding. `state` is ok, note or problem, as in the other rows of `tidemill doctor`."""

    name: str
    state: str
    found: str
    fix: str = ""


def look(project: Project, *, ask: bool) -> Iterator[Row]:
    """Look at versions, plugin and files. With `ask`, Airflow is loaded for seconds, and its pools are read."""
    yield _row("airflow constraints", _constraints)
    yield _row("airflow plugin", _registered)
    home, environ = _home(project)
    if not home.is_dir():
        fix = "tidemill up starts one; for another one set AIRFLOW_HOME"
        yield Row(name="airflow home", state="note", found=f"{home} is not there yet", fix=fix)
        return
    yield Row(name="airflow home", state="ok", found=str(home))
    yield _row("airflow dags folder", lambda: _dags(dags_folder(home, environ)))
    yield _row("airflow warm path", lambda: _warm(home / "config" / SETTINGS))
    if ask and (home / "airflow.cfg").is_file():
        os.environ.update(environ, AIRFLOW_HOME=str(home))
        yield _row("airflow plugin loaded", _loaded)
        yield _row("airflow pools", lambda: _pools(project))


def as_values(row: Row) -> dict[str, str]:
    """The row as JSON values."""
    return asdict(row)


def _row(name: str, find: Callable[[], tuple[str, str, str]]) -> Row:
    try:
        state, found, fix = find()
    except TidemillError as error:
        return Row(name=name, state="problem", found=error.message, fix=error.fix)
    # Whatever the error is, the other rows are shown.
    except Exception as error:
        return Row(name=name, state="problem", found=f"{type(error).__name__}: {error}")
    return Row(name=name, state=state, found=found, fix=fix)


def _home(project: Project) -> tuple[Path, Mapping[str, str]]:
    """The home of the Airflow that a shell here would use, and what its processes have in the environment."""
    local = project.folder.resolve() / ".tidemill" / "airflow"
    if "AIRFLOW_HOME" in os.environ or not (local / "secrets.json").is_file():
        return airflow_home(), os.environ
    own = project.folder.resolve() / "dags"
    airflow = LocalAirflow(home=Home(local), dags=own if own.is_dir() else local / "dags", port=8080)
    return local, airflow.environ()


def _constraints() -> tuple[str, str, str]:
    """Hold the versions that Tidemill needs against those that are installed."""
    from packaging.requirements import Requirement

    version = metadata.version("apache-airflow")
    wanted = [Requirement(text) for text in metadata.requires("tidemill") or ()]
    mine = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": "airflow"})]
    wrong = []
    for each in mine:
        try:
            installed = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{each.name}{each.specifier} is not installed")
            continue
        if not each.specifier.contains(installed, prereleases=True):
            wrong.append(f"{each.name} is {installed}, needed {each.specifier}")
    if wrong:
        return "problem", f"Airflow {version}; {'; '.join(wrong)}", "pip install 'tidemill[airflow]'"
    return "ok", f"Airflow {version}; all {len(mine)} packages that Tidemill needs beside it fit", ""


def _registered() -> tuple[str, str, str]:
    if metadata.entry_points(group="airflow.plugins", name="tidemill"):
        return "ok", f"registered by the package tidemill {metadata.version('tidemill')}", ""
    folder = os.environ.get("AIRFLOW__CORE__PLUGINS_FOLDER")
    if folder and (Path(folder) / "tidemill_plugin.py").is_file():
        return "ok", f"registered by {folder}/tidemill_plugin.py", ""
    fix = "pip install 'tidemill[airflow]', or set AIRFLOW__CORE__PLUGINS_FOLDER to plugins/ of a checkout"
    return "note", "not registered: pools are not made, and backfills wait in line with live runs", fix


def _dags(folder: Path) -> tuple[str, str, str]:
    files = sorted(folder.rglob("*.py"))[:_MOST_FILES] if folder.is_dir() else []
    made = [path for path in files if "dags_for(" in path.read_text(errors="replace")]
    if made:
        return "ok", f"{', '.join(map(str, made))}", ""
    return "note", f"{folder}: no file calls dags_for, so pipelines have no DAGs", _INSTALL


def _warm(file: Path) -> tuple[str, str, str]:
    if is_installed(file):
        return "ok", str(file), ""
    why = "is another file" if file.exists() else "is not there"
    return "note", f"{file} {why}: every task imports for seconds what batches need", f"{_INSTALL}, for a LocalExecutor"


def _loaded() -> tuple[str, str, str]:
    from airflow import plugins_manager

    names = [str(plugin["name"]) for plugin in plugins_manager.get_plugin_info()]
    wrong = {name: text for name, text in plugins_manager.get_import_errors().items() if "tidemill" in name}
    if "tidemill" in names and not wrong:
        return "ok", f"Airflow loads it, beside {len(names) - 1} others", ""
    return "problem", f"Airflow does not load it: {wrong or 'it is not among ' + ', '.join(names)}", "airflow plugins"


def _pools(project: Project) -> tuple[str, str, str]:
    from airflow.configuration import conf
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import SQLAlchemyError

    url = make_url(conf.get_mandatory_value("database", "sql_alchemy_conn"))
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return "note", f"{url.database} is not there yet", "airflow db migrate"
    try:
        slots = _slots(url)
    except (SQLAlchemyError, ImportError) as error:
        why = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        return "problem", f"{shown} cannot be read: {why}", "airflow db check"
    if slots is None:
        return "note", f"{shown} has no tables of Airflow yet", "airflow db migrate"
    return _compared(project, slots)


def _slots(url: URL) -> dict[str, int] | None:
    """The slots of each pool; None if the database is empty."""
    from sqlalchemy import create_engine, inspect, text

    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table("slot_pool"):
                return None
            found = connection.execute(text("SELECT pool, slots FROM slot_pool"))
            return {str(row[0]): int(row[1]) for row in found}
    finally:
        engine.dispose()


def _compared(project: Project, slots: Mapping[str, int]) -> tuple[str, str, str]:
    wanted = [pool_of(name) for name in project.pipeline_names()]
    missing = [name for name in wanted if name not in slots]
    if missing:
        fix = f"python -m tidemill_airflow --project {project.folder}, or wait"
        return "note", f"missing: {', '.join(missing)}; the first run of a pipeline makes it", fix
    wide = [f"{name} has {slots[name]} slots" for name in wanted if slots[name] != 1]
    if wide:
        return "note", f"{', '.join(wide)}: batches of a pipeline then wait for each other in tasks", "give it one slot"
    return "ok", f"{', '.join(wanted) or 'none needed'}", ""
