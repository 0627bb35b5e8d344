"""A copy of the gallery's project, to run it anywhere."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import ROOT, Mill
from tidemill.project.project import Project

GALLERY = ROOT / "spark_jobs" / "gallery"


@pytest.fixture
def gallery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project, in a folder like that of a checkout: its lake and its log are in `build`."""
    monkeypatch.setenv("TIDEMILL_JARS", str(ROOT / ".tidemill" / "jars"))
    shutil.copytree(GALLERY, tmp_path / "spark_jobs" / "gallery")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    return tmp_path / "spark_jobs" / "gallery"


def append(gallery: Path, topic: str, file: Path, *options: str) -> None:
    """Append the rows of a file of CSV to a new topic."""
    for words in (("create", topic), ("append", topic, file, "--format", "csv", "--raw", *options)):
        said = type_command(gallery, "log", *words)
        assert said.code == 0, said.err


def run_cut(gallery: Path, session: Any, pipeline: str, limits: Sequence[int]) -> Mill:
    """Run batches that read at most so many records, one after the other, and then the rest; all windows close."""
    mill = Mill(Project.load(gallery), session, pipeline)
    for limit in limits:
        mill.run(limit=limit)
    mill.catch_up()
    assert mill.own("late") == mill.own("quarantine") == []
    return mill


def differences(found: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Rows that differ: doubles by more than one part in 10^9, other values at all."""
    pairs = [(a, b) for a, b in zip(found, wanted, strict=False) if a.keys() != b.keys() or not _same(a, b)]
    return pairs or ([(len(found), len(wanted))] if len(found) != len(wanted) else [])


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(
        math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-9)
        if isinstance(value, float)
        else value == other[name]
        for name, value in one.items()
    )
