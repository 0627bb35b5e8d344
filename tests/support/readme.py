"""What README and pages say, and a shell in which one types it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.projects import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
JARS = str(ROOT / ".tidemill" / "jars")
SET_UP = "make setup && . .tidemill/env.sh"
FILES = re.compile(r"`(tidemill\.toml|data_contracts/\S+\.yaml|pipelines/\S+\.py)`")


def section(title: str) -> str:
    """The text under a heading."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)[1]


def page(name: str) -> str:
    """The text of a page of the site."""
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def code(name: str, *languages: str) -> list[str]:
    """The blocks of a page that are marked with one of these languages, in order."""
    return [text for language, text in _blocks(page(name)) if language in languages]


def _blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```([^\n`]*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def blocks(*languages: str) -> list[str]:
    """The blocks of the first pipeline that are marked with one of these languages, in order."""
    return [text for language, text in _blocks(section("Your first pipeline")) if language in languages]


def commands() -> list[str]:
    """What is typed once the files are there, a command each."""
    return blocks("sh")[1].replace("\\\n", " ").splitlines()


def typed(script: str, folder: Path, *, patience: float = 120) -> subprocess.CompletedProcess[str]:
    """Type into a shell that has what `.tidemill/env.sh` sets: `tidemill` on PATH, and where the jars are."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TIDEMILL_")}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    environ["TIDEMILL_JARS"] = JARS
    command = ["bash", "-euo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=patience, check=False
    )


def a_shop(checkout: Path) -> Path:
    """The project of the README, made as it says in a folder that stands for the checkout."""
    set_up, make_folders = blocks("sh")[0].split("\n", 1)
    assert set_up.partition("#")[0].strip() == SET_UP
    assert typed(make_folders, checkout).returncode == 0
    names = dict.fromkeys(FILES.findall(section("Your first pipeline")))
    for name, text in zip(names, blocks("toml", "yaml", "python"), strict=True):
        (checkout / "shop" / name).write_text(text, encoding="utf-8")
    return checkout / "shop"
