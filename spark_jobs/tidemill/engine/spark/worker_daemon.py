"""The process that forks Spark's Python workers: PySpark's own daemon, which imports PySpark from its folder.

Spark puts an archive of PySpark's sources before everything else on Python's path, and Python cannot keep what it
compiles from an archive. So the daemon, and each of its workers, compiled PySpark anew: a second for the first job, and
half a second whenever workers had been idle for a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path


def installed_first(path: Iterable[str]) -> list[str]:
    """Entries of Python's path: the archives come last, if their packages are installed, too."""
    entries = list(path)
    archives = [entry for entry in entries if Path(entry).name.startswith(("pyspark.zip", "py4j-"))]
    rest = [entry for entry in entries if entry not in archives]
    there = all(PathFinder.find_spec(name, rest) for name in ("pyspark", "py4j"))
    return [*rest, *archives] if there else entries


if __name__ == "__main__":
    sys.path[:] = installed_first(sys.path)
    from pyspark.daemon import manager

    manager()
