"""The project that `tidemill init` creates."""

from __future__ import annotations

import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from tidemill.core.errors import ConfigError
from tidemill.project.settings import FILE

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


def make_project(folder: str | Path) -> list[Path]:
    """Write the files of a new project into a folder that is new or empty, and return their paths.

    Raises:
        ConfigError: the folder is not empty, cannot be written, or its name is not valid for a project.
    """
    root = Path(folder)
    name = root.resolve().name
    if not _NAME.fullmatch(name):
        raise ConfigError(f"not a name for a project: {name!r}", fix="use letters, digits and _ . -, a letter first")
    try:
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise ConfigError(f"{root} is there already", fix="name a folder that is not there, or an empty one")
        return list(_written(resources.files(__name__).joinpath("files"), root, name))
    except OSError as error:
        raise ConfigError(f"{root}: cannot be written: {error.strerror or error}", fix="name another folder") from None


def project_around(folder: str | Path) -> Path | None:
    """Return the nearest project that contains the folder; None if there is none."""
    return next((above for above in Path(folder).resolve().parents if (above / FILE).is_file()), None)


def _written(source: Traversable, target: Path, name: str) -> list[Path]:
    if not source.is_dir():
        # This suffix keeps tools from treating the file as one of Tidemill's own.
        path = target.with_name(target.name.removesuffix(".txt").replace("dot-", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source.read_text(encoding="utf-8").replace("@NAME@", name), encoding="utf-8")
        return [path]
    parts = sorted(source.iterdir(), key=lambda part: part.name)
    return [path for part in parts for path in _written(part, target / part.name.replace("dot-", "."), name)]
