"""Machines made of shell scripts, for the tests of set-up."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from host import Host

from support.readme import a_shop

REAL = ("sh", "dirname", "cat", "mkdir", "cp", "chmod")


@dataclass(frozen=True, slots=True)
class Machine:
    """A PATH that holds some real commands and those that a test writes."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "bin"

    @property
    def calls(self) -> list[str]:
        """Each call of a fake command so far: its name and arguments."""
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def command(self, name: str | Path, script: str = "") -> Path:
        """Put a fake command on PATH, or anywhere if `name` is absolute; it records its calls."""
        path = self.bin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{path.name} $*" >> "{self.folder}/calls"\n{script}\n')
        path.chmod(0o755)
        return path

    def java(self, home: str | Path, version: str) -> Path:
        """Put a fake Java of that version into a folder; return the folder."""
        folder = self.folder / home
        properties = f"    java.home = {folder}\n    java.specification.version = {version}"
        self.command(folder / "bin" / "java", f'echo "{properties}" >&2')
        return folder

    def host(self, user_id: int = 1000, environ: Mapping[str, str] | None = None) -> Host:
        """This machine, used by an ordinary user or by root (0)."""
        return Host(environ={"PATH": str(self.bin), **(environ or {})}, user_id=user_id, log=self.folder / "log")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without Java, apt-get or Python."""
    made = Machine(tmp_path / "machine")
    made.bin.mkdir(parents=True)
    for name in REAL:
        found = next(Path(folder, name) for folder in os.defpath.split(":") if Path(folder, name).exists())
        (made.bin / name).symlink_to(found)
    return made


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The README's first project."""
    monkeypatch.delenv("TIDEMILL_JARS", raising=False)
    return a_shop(tmp_path)
