"""A project for commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import Said, Type, type_command
from support.projects import NO_SPARK, Mill, sums
from tidemill.engine.spark import jars


@pytest.fixture(scope="session", autouse=True)
def _jars_are_read_once() -> Iterator[None]:
    """The same file has the same checksum: all jars take a second, and `doctor` looks at them in each of its tests."""
    known: dict[tuple[Path, int, int], str] = {}
    checksum = jars._checksum

    def remembered(path: Path) -> str:
        found = path.stat()
        key = (path, found.st_size, found.st_mtime_ns)
        return known.setdefault(key, known.get(key) or checksum(path))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jars, "_checksum", remembered)
        yield


@pytest.fixture
def mill(tmp_path: Path) -> Mill:
    """The project `sums` with an empty topic `events`; no Spark."""
    return sums(tmp_path, NO_SPARK)


@pytest.fixture
def tidemill(mill: Mill) -> Type:
    """Types a command in that project."""

    def type_there(*words: object, **more: Any) -> Said:
        return type_command(mill.project.folder, *words, **more)

    return type_there
