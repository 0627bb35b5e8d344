"""`tidemill test`: the tests of a project."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from tidemill.cli.output import open_project
from tidemill.core.errors import ConfigError
from tidemill.core.exit_code import ExitCode
from tidemill.project.project import VARIABLE


def run_tests(
    ctx: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGUMENT]...", help="Arguments for pytest: files, `-k WORD`, `-x` ..."),
    ] = None,
) -> None:
    """Run the tests of the project with pytest, in its folder `tests`. The exit code is 8 if one of them fails."""
    project = open_project(ctx)
    if find_spec("pytest") is None:
        raise ConfigError("the tests of a project need pytest", fix="pip install pytest")
    words = [sys.executable, "-m", "pytest", *(arguments or ["tests"])]
    environ = {**os.environ, VARIABLE: str(project.folder)}
    done = subprocess.run(words, cwd=project.folder, env=environ, check=False)
    if done.returncode:
        raise typer.Exit(ExitCode.DIFFERENT if done.returncode == 1 else ExitCode.WRONG)
