"""What `tidemill contract diff --base` compares with: the commit where a branch was begun, wherever contracts lay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli.conftest import Type
from cli.test_contract_diff import NEW, change, commit, folder, git

__all__ = ["folder"]


def test_what_the_base_got_since_the_branch_began_is_not_taken_from_it(tidemill: Type, folder: Path) -> None:
    git(folder.parent, "checkout", "--quiet", "-b", "work")
    git(folder.parent, "checkout", "--quiet", "main")
    shutil.copy(folder / "sums.odcs.yaml", folder / "more.odcs.yaml")
    change(folder / "events.odcs.yaml", ("maximum: 1000000", "maximum: 1000001"))
    commit(folder, "Go on")
    git(folder.parent, "checkout", "--quiet", "work")
    said = tidemill("contract", "diff", "--base", "main")
    assert (said.code, said.out.splitlines()[-1]) == (0, "0 changes, 0 breaking")
    change(folder / "sums.odcs.yaml", NEW)
    said = tidemill("contract", "diff", "--base", "main")
    assert (said.code, said.out.splitlines()[-1]) == (1, "1 change, 1 breaking")


def test_branches_that_share_no_commit_are_compared_as_they_are(tidemill: Type, folder: Path) -> None:
    git(folder.parent, "checkout", "--quiet", "--orphan", "other")
    change(folder / "sums.odcs.yaml", NEW)
    commit(folder, "Begin again")
    said = tidemill("contract", "diff", "--base", "main")
    assert (said.code, said.out.splitlines()[-1]) == (1, "1 change, 1 breaking")


@pytest.mark.parametrize("to", ["contracts", "apps/shop/data_contracts"])
def test_contracts_that_were_moved_are_compared_with_what_they_were(tidemill: Type, folder: Path, to: str) -> None:
    new = folder.parent / to
    new.parent.mkdir(parents=True, exist_ok=True)
    folder.rename(new)
    commit(folder, "Move the contracts")
    assert tidemill("contract", "diff", "--base", "HEAD^", new).out.splitlines()[-1] == "0 changes, 0 breaking"
    change(new / "sums.odcs.yaml", NEW)
    for place in (new, new / "sums.odcs.yaml"):
        said = tidemill("contract", "diff", "--base", "HEAD^", place)
        assert (said.code, said.out.splitlines()[-1]) == (1, "1 change, 1 breaking"), said.out


def test_contracts_that_were_copied_are_new(tidemill: Type, folder: Path) -> None:
    new = folder.parent / "contracts"
    shutil.copytree(folder, new)
    change(new / "sums.odcs.yaml", NEW)
    said = tidemill("contract", "diff", "--base", "HEAD", new)
    assert (said.code, said.out.splitlines()[-1]) == (0, "2 changes, 0 breaking")


def test_of_two_files_of_a_name_the_one_with_the_same_folders_was_moved(tidemill: Type, folder: Path) -> None:
    for name, of in (("a", ()), ("b", (NEW,))):
        (folder.parent / name / "data_contracts").mkdir(parents=True)
        there = shutil.copy(folder / "sums.odcs.yaml", folder.parent / name / "data_contracts")
        change(Path(there), *of)
    commit(folder, "Two shops")
    for name in ("a", "b"):
        (folder.parent / "apps").mkdir(exist_ok=True)
        (folder.parent / name).rename(folder.parent / "apps" / name)
    for name in ("a", "b"):
        said = tidemill("contract", "diff", "--base", "HEAD", folder.parent / "apps" / name / "data_contracts")
        assert (said.code, said.out.splitlines()[-1]) == (0, "0 changes, 0 breaking"), said.out
