"""What tests of crashes do again and again: take a copy of a prepared project, and let a command fail in it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from machine.conftest import run
from machine.failing import failing
from support.projects import NO_SPARK, Mill
from tidemill.core.errors import TidemillError
from tidemill.core.protocol import failpoints
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo


def a_copy(prepared: Path, name: str, pipeline: str = "sums") -> Mill:
    """A copy in place of the last one of that name."""
    folder = prepared.with_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    return Mill(Project.load(folder), NO_SPARK, pipeline)


def met(command: Callable[[], object]) -> list[str]:
    """The boundaries that a command comes to, each once."""
    names: dict[str, None] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "_reach", lambda side, name, _: names.setdefault(name))
        command()
    return list(names)


def broken(command: Callable[[], object], failure: str, times: int = 1) -> None:
    """Let a command fail there, so many times. After the first one it may have no way there any more.

    A lost answer may be found again, so that the command ends well.
    """
    for earlier in range(times):
        with failing(failure):
            command()
            assert earlier or failure.endswith("=lose"), f"{failure}: the command did not come there"


def caught_up(mill: Mill) -> None:
    """Live batches, as the pipeline finds itself now, until there is nothing to do."""
    while not isinstance(run(mill, limit=10), NothingToDo):
        pass


def fate_of(command: Callable[[], object]) -> str:
    """How a command ended."""
    try:
        command()
    except TidemillError as error:
        return type(error).__name__
    return "done"
