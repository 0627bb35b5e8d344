"""Commands typed in the process of a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from support.json_output import hold
from tidemill.cli.main import app


@dataclass(frozen=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """The JSON objects, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """The one JSON object."""
        (only,) = self.lines
        return only


Type = Callable[..., Said]


def type_command(folder: Path | None, *words: object, session: Any = None, given: bytes | str = "") -> Said:
    """Run `tidemill` in this process; a command that fails in an unforeseen way fails the test.

    JSON that `docs/reference/json.md` does not describe fails it, too.
    """
    project: Sequence[str] = ["--project", str(folder)] if folder else []
    # Without a terminal, and whatever the environment of the tests.
    environ = {"TIDEMILL_DEBUG": None, "TIDEMILL_PROJECT": None, "NO_COLOR": "1"}
    result = CliRunner().invoke(app, [*project, *map(str, words)], env=environ, obj=session, input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "--json" in words:
        hold(tuple(map(str, words)), result.stdout)
    return Said(result.exit_code, result.stdout, result.stderr)
