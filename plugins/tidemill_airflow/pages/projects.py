"""The projects whose pipelines the pages show. The API server's operator names them, never the author of a DAG.

Loading a project runs its pipeline files. An API server must not run code because a DAG names a folder, so the folders
come from its own configuration: `[tidemill] projects`, or the project that the `tidemill` command would find.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.pages.sight import Sight

LOOK_AGAIN = 2.0
"""Seconds for which nobody asks whether files of a project have changed."""

_Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the folders hold: pipelines by name, and what is wrong with files or folders, for people."""

    pipelines: Mapping[str, Sight] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


class Projects:
    """Loads projects, and loads one anew when one of its files has changed. Safe to use from several threads.

    Args:
        folders: returns the folders to show; None among them is the project that the `tidemill` command would find.
    """

    def __init__(self, folders: Callable[[], Sequence[str | None]]) -> None:
        self._folders, self._lock = folders, Lock()
        self._found, self._stamp, self._looked = Found(), _Stamp(), float("-inf")

    def found(self) -> Found:
        """The pipelines of all projects. If two projects declare one name, the first folder's counts."""
        with self._lock:
            if monotonic() - self._looked > LOOK_AGAIN:
                folders = self._folders()
                stamp = tuple(part for folder in folders for part in _stamp(folder))
                if stamp != self._stamp or not stamp:
                    self._found, self._stamp = _load(folders), stamp
                self._looked = monotonic()
            return self._found


def _load(folders: Sequence[str | None]) -> Found:
    pipelines: dict[str, Sight] = {}
    faults: list[str] = []
    for folder in folders:
        try:
            project = Project.load(folder)
            names, wrong = project.pipeline_names(), project.faults
        except TidemillError as error:
            faults.append(str(error))
            continue
        faults += map(str, wrong)
        faults += [f"{project.folder}: another project declares `{n}`, too" for n in names if n in pipelines]
        pipelines |= {name: Sight(project, name) for name in names if name not in pipelines}
    return Found(pipelines=pipelines, faults=tuple(faults))


def _stamp(folder: str | None) -> Iterator[tuple[str, int, int]]:
    """Name, time and size of every file of a project that declares something. Nothing is opened."""
    try:
        project = Project.load(folder)
    except TidemillError as error:
        yield (str(error), 0, 0)
        return
    places = (project.settings.pipelines, project.settings.contracts)
    for place in (project.folder / "tidemill.toml", *map(Path, places)):
        yield from _files(place)


def _files(place: Path) -> Iterator[tuple[str, int, int]]:
    if place.is_dir():
        for name in sorted(os.listdir(place)):
            yield from _files(place / name)
    elif place.exists():
        found = place.stat()
        yield (str(place), found.st_mtime_ns, found.st_size)
