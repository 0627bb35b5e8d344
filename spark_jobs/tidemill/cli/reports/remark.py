"""A finding as all reports have it, and the names of files in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemill.contracts.findings import Level

ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables in which systems of CI say where the checkout is: they know files by their paths inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What was found in a line of a file; `line` counts from 1. `rule` is a short name for findings of one kind.

    `samples` are values that show it, each in one line. What is `spared` fails nothing, whatever its level.
    """

    level: Level
    rule: str
    message: str
    file: str
    line: int
    fix: str = ""
    samples: tuple[str, ...] = ()
    spared: bool = False

    @property
    def text(self) -> str:
        """The message, samples of what was found, and how to mend it."""
        return "\n".join([self.message, *self.samples, *([f"fix: {self.fix}"] if self.fix else [])])


def inside(file: str, environ: Mapping[str, str] = os.environ) -> str:
    """The path of a file in the checkout, with slashes; the file's own path if it lies elsewhere.

    The checkout is what the system of CI says; without one, it is the working directory.
    """
    path = Path(file).absolute()
    for root in (*(Path(environ[name]) for name in ROOTS if environ.get(name)), Path.cwd()):
        for known in (root.absolute(), root.resolve()):
            if path.is_relative_to(known):
                return path.relative_to(known).as_posix()
    return Path(file).as_posix()
