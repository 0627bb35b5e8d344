"""With which commit `make check` compares the contracts of this repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from support.commands import type_command
from support.projects import ROOT

WHO = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(folder: Path, why: str) -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "-m", why)
    return git(folder, "rev-parse", "HEAD")


def base(folder: Path, **more: str) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | more
    script = [str(ROOT / "infra" / "ci" / "base.sh")]
    done = subprocess.run(script, cwd=folder, check=True, capture_output=True, text=True, env=environ)
    return done.stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_a_branch_is_compared_with_where_it_left_the_main_branch(folder: Path) -> None:
    assert base(folder) == ""
    first = commit(folder, "Begin")
    assert base(folder) == ""
    second = commit(folder, "Go on")
    assert base(folder) == first
    git(folder, "checkout", "--quiet", "-b", "work")
    assert base(folder) == first
    for why in ("one", "two", "three"):
        commit(folder, why)
        assert base(folder) == second
    git(folder, "checkout", "--quiet", "main")
    third = commit(folder, "Meanwhile")
    git(folder, "checkout", "--quiet", "work")
    assert base(folder) == second
    git(folder, "merge", "--quiet", "--no-edit", "main")
    assert base(folder) == third
    assert base(folder, MAIN="nope") == git(folder, "rev-parse", "HEAD^")


def test_the_check_asks_for_it() -> None:
    assert "BASE=$$(infra/ci/base.sh) infra/ci/contracts.sh" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_pages_about_contracts_are_not_committed(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    assert type_command(None, "init", folder).code == 0
    git(folder, "init", "--quiet")
    assert type_command(folder, "contract", "docs").code == 0
    assert (folder / "contract_docs").is_dir()
    assert "contract_docs" not in git(folder, "status", "--short")
