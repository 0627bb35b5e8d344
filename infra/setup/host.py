"""What set-up does on the machine: run a command, find one, install a package of Debian or Ubuntu."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PRINTED_ON_FAILURE = 15


class SetupError(Exception):
    """Set-up cannot continue. The text says what the user has to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine as set-up sees it. `log` receives what the commands print."""

    environ: Mapping[str, str]
    user_id: int
    log: Path

    def find(self, command: str) -> str | None:
        """Return the path of a command on PATH; None if it is not there."""
        return shutil.which(command, path=self.environ.get("PATH", os.defpath))

    def ask(self, *command: str | Path) -> str | None:
        """Return what a command prints, on both streams; None if it fails or cannot be started."""
        words = [str(word) for word in command]
        try:
            answer = subprocess.run(
                words, env=self.environ, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return (answer.stdout + answer.stderr).decode(errors="replace")

    def run(self, *command: str | Path, what: str, **more: str) -> None:
        """Run a command to its end, without input. `more` is added to its environment.

        Raises:
            SetupError: it failed. The text names it by `what` and ends with the last lines it printed.
        """
        words = [str(word) for word in command]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            start = log.tell()
            try:
                code = subprocess.run(
                    words, env={**self.environ, **more}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
                ).returncode
            except OSError as error:
                raise SetupError(f"{what} failed: {error}") from error
        if code != 0:
            printed = self.log.read_bytes()[start:].decode(errors="replace").splitlines()
            shown = "".join(f"\n  {line}" for line in printed[-PRINTED_ON_FAILURE:])
            raise SetupError(f"{what} failed with exit code {code}; its last lines, all are in {self.log}:{shown}")

    def can_install(self) -> bool:
        """Whether packages of Debian or Ubuntu can be installed without asking anyone."""
        return self.user_id == 0 and self.find("apt-get") is not None

    def install(self, *packages: str) -> None:
        """Install the first of `packages` that this release of Debian or Ubuntu has. Requires `can_install`.

        Raises:
            SetupError: none could be installed.
        """
        apt = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=120")
        # A package source that cannot be reached must not prevent an installation from the others.
        with suppress(SetupError):
            self.run(*apt, "update", what="apt-get update", DEBIAN_FRONTEND="noninteractive")
        for package in packages[:-1]:
            with suppress(SetupError):
                return self._install(apt, package)
        return self._install(apt, packages[-1])

    def _install(self, apt: Sequence[str], package: str) -> None:
        command = (*apt, "install", "--no-install-recommends", package)
        self.run(*command, what=f"apt-get install {package}", DEBIAN_FRONTEND="noninteractive")
