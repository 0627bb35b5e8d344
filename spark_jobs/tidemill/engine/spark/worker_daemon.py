"""The process that forks Spark's Python workers: PySpark's own daemon, which imports PySpark from its folder.

Spark puts an archive of PySpark's sources before everything else on Python's path, and Python cannot keep what it
compiles from an archive. So the daemon, and each of its workers, compiled PySpark anew: a second for the first job, and
half a second whenever workers had been idle for a minute.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from zipimport import zipimporter

Files = Mapping[str, tuple[int, int, int] | None]
"""Of each module: when its file changed, its size and its number on the disk; None if it has no file."""

_ARCHIVE, _VERSION = "pyspark.zip", Path("pyspark", "version.py")


def installed_first(path: Iterable[str]) -> list[str]:
    """Entries of Python's path: the archives come last, if their packages are installed, too."""
    entries = list(path)
    archives = [entry for entry in entries if Path(entry).name.startswith((_ARCHIVE, "py4j-"))]
    rest = [entry for entry in entries if entry not in archives]
    return [*rest, *archives] if _are_installed(archives, rest) else entries


def _are_installed(archives: Iterable[str], rest: Iterable[str]) -> bool:
    """Whether `rest` has py4j and the archive's version of PySpark: another one may not understand this Spark."""
    pyspark, py4j = (PathFinder.find_spec(name, list(rest)) for name in ("pyspark", "py4j"))
    if pyspark is None or pyspark.origin is None or py4j is None:
        return False
    try:
        version = Path(pyspark.origin).with_name(_VERSION.name).read_bytes()
        of_spark = [zipimporter(entry) for entry in archives if Path(entry).name == _ARCHIVE]
        return all(archive.get_data(str(_VERSION)) == version for archive in of_spark)
    except (OSError, ImportError):
        return False


def files_of_tidemill(modules: Mapping[str, ModuleType]) -> Files:
    """What tells whether the files of Tidemill's loaded modules change."""
    ours = {name: module for name, module in modules.items() if name.split(".")[0] == "tidemill"}
    return {name: _state_of(getattr(module, "__file__", None)) for name, module in ours.items()}


def forget_if_changed(modules: MutableMapping[str, ModuleType], before: Files) -> None:
    """Let a worker load Tidemill anew if its files have changed: the daemon of a server lives longer than a version."""
    now = files_of_tidemill(modules)
    if any(now.get(name) != state for name, state in before.items()):
        for name in before:
            modules.pop(name, None)


def _state_of(file: str | None) -> tuple[int, int, int] | None:
    if file is None:
        return None
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


if __name__ == "__main__":
    sys.path[:] = installed_first(sys.path)
    os.register_at_fork(after_in_child=partial(forget_if_changed, sys.modules, files_of_tidemill(sys.modules)))
    from pyspark.daemon import manager

    manager()
