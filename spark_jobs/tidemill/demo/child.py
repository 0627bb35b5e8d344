"""Runs batches in a process of their own, so that it can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemill.core import errors
from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.protocol.failpoints import VARIABLE

Facts = Mapping[str, Any]
"""A committed batch, as `tidemill run --json` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One call of `tidemill run`. If `failpoint` is set, the process is killed there."""

    project: Path
    pipeline: str
    limit: int
    drain: bool = False
    failpoint: str | None = None

    @property
    def command(self) -> list[str]:
        """The command line that a user would type, with this Python."""
        options = ["--until-caught-up", "--limit", str(self.limit), *(["--drain"] if self.drain else []), "--json"]
        module = [sys.executable, "-m", "tidemill.cli.main"]
        return [*module, "--project", str(self.project), "run", self.pipeline, *options]


def execute(run: Run, committed: Callable[[Facts], None]) -> bool:
    """Run batches until nothing is left to do, and report each commit. False if the process was killed.

    Raises:
        TidemillError: the process failed with this error.
    """
    environ = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if run.failpoint:
        environ[VARIABLE] = f"{run.failpoint}=kill"
    problems = run.project / "run.log"
    failure: Facts | None = None
    with (
        problems.open("ab") as said,
        subprocess.Popen(run.command, stdout=subprocess.PIPE, stderr=said, text=True, env=environ) as process,
    ):
        try:
            for event in map(json.loads, process.stdout or ()):
                if event["event"] == "committed":
                    committed(event)
                elif event["event"] == "failed":
                    failure = event
            code = process.wait()
        finally:
            process.terminate()
    if code == -signal.SIGKILL and run.failpoint:
        return False
    if code:
        raise _error(failure, code, problems)
    return True


def _error(failure: Facts | None, code: int, said: Path) -> TidemillError:
    if failure is None:
        return EngineError(f"the process that ran batches ended with code {code}", fix=f"see {said}")
    kind = getattr(errors, failure["error"], TidemillError)
    error: TidemillError = kind(failure["message"], fix=failure["fix"])
    return error
