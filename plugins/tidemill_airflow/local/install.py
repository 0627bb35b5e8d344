"""Puts Tidemill's two files where an Airflow looks for them, and never over a file that a person changed."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Callable, Mapping
from configparser import ConfigParser, Error
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tidemill.core.errors import ConfigError

SETTINGS = "airflow_local_settings.py"
DAGS = "tidemill_dags.py"

_SEAL = "# Made by `tidemill airflow install`, which replaces it as long as these lines are unchanged: "
_WARM = '''"""Tasks start warm: who forks them imports what batches need. See tidemill_airflow.scheduler.warm_path."""

from tidemill_airflow.scheduler.warm_path import warm_scheduler

__all__: list[str] = []

warm_scheduler()
'''
_CALL = "warm_scheduler()"


class Outcome(StrEnum):
    """What became of a file."""

    WRITTEN = "written"
    UNCHANGED = "is there already"
    REPLACED = "replaced: nobody had changed it"
    YOURS = "is yours and does what is needed: left alone"
    DIFFERS = "is yours, and differs: left alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """What became of a file. `differs` says what is missing in it, as lines of a comparison."""

    path: Path
    outcome: Outcome
    differs: tuple[str, ...] = ()


def airflow_home(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of the Airflow that a shell with this environment would use."""
    named = (os.environ if environ is None else environ).get("AIRFLOW_HOME")
    return Path(named).expanduser() if named else Path.home() / "airflow"


def dags_folder(home: Path, environ: Mapping[str, str] | None = None) -> Path:
    """The folder of an Airflow's DAG files, from the environment or airflow.cfg; else it is `dags` in the home."""
    named = (os.environ if environ is None else environ).get("AIRFLOW__CORE__DAGS_FOLDER")
    if not named:
        config = ConfigParser(interpolation=None, strict=False)
        try:
            config.read(home / "airflow.cfg")
        except (Error, UnicodeDecodeError):
            config.clear()
        named = config.get("core", "dags_folder", fallback="").replace("{AIRFLOW_HOME}", str(home))
    return Path(named).expanduser() if named else home / "dags"


def install(home: Path, project: Path, *, dags: Path | None = None) -> tuple[Installed, ...]:
    """Install the warm path, and the DAG file of a project. A second call changes nothing.

    Raises:
        ConfigError: a folder cannot be made or written to.
    """
    return (install_settings(home), install_dags(dags or dags_folder(home), project))


def install_settings(home: Path) -> Installed:
    """Install the warm path.

    Raises:
        ConfigError: the folder cannot be made or written to.
    """
    return _put(home / "config" / SETTINGS, _WARM, does=lambda text: _CALL in text)


def install_dags(folder: Path, project: Path) -> Installed:
    """Install the DAG file of a project. The file of another project is not replaced.

    Raises:
        ConfigError: the folder cannot be made or written to.
    """
    project = project.resolve()
    wanted = (
        f'"""Airflow DAGs of every pipeline of {_plain(project)}."""\n\n'
        "from tidemill_airflow.factory import dags_for\n\n"
        f"globals().update(dags_for({str(project)!r}))\n"
    )
    own = folder.resolve() == project / "dags"
    return _put(
        folder / DAGS,
        wanted,
        does=lambda text: "dags_for(" in text and (own or repr(str(project)) in text),
        ours=lambda text: repr(str(project)) in text,
    )


def is_installed(path: Path) -> bool:
    """Whether this file starts the warm path."""
    try:
        return _CALL in path.read_text(errors="replace")
    except OSError:
        return False


def _put(
    path: Path, wanted: str, *, does: Callable[[str], bool], ours: Callable[[str], bool] = lambda _: True
) -> Installed:
    """Write a file, unless a person has. `does` says whether a person's text does what is needed."""
    text = f"{wanted}\n{_SEAL}{_digest(wanted)}\n"
    try:
        found = path.read_text(errors="replace") if path.exists() else None
        if found == text:
            return Installed(path=path, outcome=Outcome.UNCHANGED)
        if found is not None and not (_is_sealed(found) and ours(found)):
            if does(found):
                return Installed(path=path, outcome=Outcome.YOURS)
            lines = difflib.unified_diff(found.splitlines(), wanted.splitlines(), str(path), "wanted", lineterm="", n=1)
            return Installed(path=path, outcome=Outcome.DIFFERS, differs=tuple(lines))
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.new")
        partial.write_text(text)
        partial.replace(path)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}", fix="change its rights, or give another --home"
        ) from None
    return Installed(path=path, outcome=Outcome.WRITTEN if found is None else Outcome.REPLACED)


def _is_sealed(text: str) -> bool:
    """Whether we wrote this text, and nobody changed it since."""
    wanted, seal, digest = text.rpartition(f"\n{_SEAL}")
    return bool(seal) and digest == f"{_digest(wanted)}\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(project: Path) -> str:
    """A path as it can stand in a docstring."""
    return str(project).replace("\\", "/").replace('"', "'")
