"""`tidemill contract diff`: what a change of contracts breaks, between files, folders and revisions of git."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.conftest import Type
from support.projects import Mill

NEW = ("amount, logicalType: integer", "amount, logicalType: string")
"""A change of a type, which breaks readers."""


@pytest.fixture
def folder(mill: Mill) -> Path:
    """The project's contracts, committed to a repository of git."""
    found = mill.project.folder / "data_contracts"
    git(mill.project.folder, "init", "--quiet", "--initial-branch=main")
    commit(found, "contracts")
    return found


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def commit(folder: Path, why: str) -> None:
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "--quiet", "-m", why)


def change(file: Path, *replacements: tuple[str, str]) -> None:
    text = file.read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")


def test_a_breaking_change_ends_with_one_and_names_what_it_breaks(tidemill: Type, folder: Path) -> None:
    change(folder / "sums.odcs.yaml", NEW)
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert said.code == 1
    line = next(n for n, t in enumerate((folder / "sums.odcs.yaml").read_text().splitlines(), 1) if "amount" in t)
    assert (
        f"{folder}/sums.odcs.yaml:{line}: breaking: sums: `amount`: a type is another one: bigint, now string"
        in said.out
    )
    assert "  breaks: readers, state" in said.out
    assert "sums: version 1.0.0, now 1.0.0; these changes need another major version" in said.out
    assert said.out.endswith("1 change, 1 breaking\n")


def test_a_compatible_change_ends_with_zero_unless_warnings_fail(tidemill: Type, folder: Path) -> None:
    change(
        folder / "sums.odcs.yaml", ("amount, logicalType: integer", "amount, logicalType: integer, deprecated: true")
    )
    said = tidemill("contract", "diff", "--base", "HEAD", folder)
    assert (said.code, said.out.splitlines()[-1]) == (0, "1 change, 0 breaking")
    assert "need another minor version" in said.out
    assert tidemill("contract", "diff", "--base", "HEAD", "--fail-on", "warning").code == 1
    change(folder / "sums.odcs.yaml", ("version: 1.0.0", "version: 1.1.0"))
    assert tidemill("contract", "diff", "--base", "HEAD", "--fail-on", "warning").code == 0


def test_nothing_changed(tidemill: Type, folder: Path) -> None:
    said = tidemill("contract", "diff", "--base", "HEAD", folder / "sums.odcs.yaml")
    assert (said.code, said.out) == (0, "0 changes, 0 breaking\n")


def test_a_contract_that_cannot_be_used_ends_with_two(tidemill: Type, folder: Path) -> None:
    change(folder / "sums.odcs.yaml", ("logicalType: integer", "logicalType: integr"))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert said.code == 2
    assert f"{folder}/sums.odcs.yaml:" in said.err
    assert "integr" in said.err


@pytest.mark.parametrize("fail_on", ["error", "warning"])
def test_a_change_that_mends_a_contract_is_green(tidemill: Type, folder: Path, fail_on: str) -> None:
    good = (folder / "sums.odcs.yaml").read_text()
    change(folder / "sums.odcs.yaml", ("logicalType: integer", "logicalType: integr"))
    commit(folder, "Break it")
    (folder / "sums.odcs.yaml").write_text(good)
    said = tidemill("contract", "diff", "--base", "HEAD", "--fail-on", fail_on)
    assert said.code == 0, said.out + said.err
    assert "information: at HEAD: " in said.out
    assert "integr" in said.out
    assert "sums: the contract is new" in said.out


def test_a_version_that_went_down_is_named(tidemill: Type, folder: Path) -> None:
    change(folder / "sums.odcs.yaml", ("version: 1.0.0", "version: 0.9.0"))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "sums: version 1.0.0, now 0.9.0; it went down" in said.out) == (0, True)
    assert tidemill("contract", "diff", "--base", "HEAD", "--fail-on", "warning").code == 1


def test_two_files_are_versions_of_one_contract(tidemill: Type, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "newer.odcs.yaml"
    other.write_text((folder / "sums.odcs.yaml").read_text())
    change(other, NEW)
    said = tidemill("contract", "diff", folder / "sums.odcs.yaml", other, "--json")
    assert said.code == 1
    found, version = [json.loads(line) for line in said.out.splitlines()]
    assert version["severity"] == "warning"
    assert (found["change"], found["where"], found["breaks"], found["bump"]) == (
        "type-changed",
        "amount",
        ["readers", "state"],
        "major",
    )


@pytest.mark.parametrize("by_git", [True, False], ids=["revision", "folders"])
def test_another_contract_does_not_stand_for_one_that_is_gone(
    tidemill: Type, folder: Path, tmp_path: Path, by_git: bool
) -> None:
    (folder / "events.odcs.yaml").unlink()
    commit(folder, "Keep one contract")
    old = shutil.copytree(folder, tmp_path / "old")
    (folder / "sums.odcs.yaml").rename(folder / "payments.odcs.yaml")
    change(folder / "payments.odcs.yaml", ("id: sums", "id: payments"), ("name: sums", "name: payments"))
    said = tidemill("contract", "diff", *(("--base", "HEAD") if by_git else (old,)), folder)
    assert said.code == 1, said.out
    assert "breaking: sums: the contract is gone" in said.out
    assert "payments: the contract is new" in said.out
    assert said.out.endswith("2 changes, 1 breaking\n")


def test_a_contract_whose_file_and_object_are_renamed_is_known_by_its_id(tidemill: Type, folder: Path) -> None:
    (folder / "sums.odcs.yaml").rename(folder / "totals.odcs.yaml")
    change(folder / "totals.odcs.yaml", ("name: sums", "name: totals"))
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "sums, now totals" in said.out) == (0, True), said.out


def test_contracts_that_a_revision_lacks_are_new(tidemill: Type, folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more" / "bills.odcs.yaml").write_text((folder / "sums.odcs.yaml").read_text())
    said = tidemill("contract", "diff", "--base", "HEAD", folder / "more")
    assert (said.code, said.out.splitlines()[-1]) == (0, "1 change, 0 breaking")
    assert "bills: the contract is new" in said.out


def test_any_revision_of_a_history_can_be_the_base(tidemill: Type, folder: Path) -> None:
    git(folder.parent, "tag", "begun")
    git(folder.parent, "checkout", "--quiet", "-b", "rename")
    (folder / "sums.odcs.yaml").rename(folder / "totals.odcs.yaml")
    commit(folder, "Call it totals")
    git(folder.parent, "checkout", "--quiet", "main")
    change(folder / "events.odcs.yaml", ("maximum: 1000000", "maximum: 10"))
    commit(folder, "Refuse large amounts")
    git(folder.parent, "merge", "--quiet", "--no-edit", "rename")
    (folder / "events.odcs.yaml").rename(folder.parent / "kept")
    commit(folder, "Take the records out")
    (folder.parent / "kept").rename(folder / "events.odcs.yaml")
    commit(folder, "Take them in again")
    since = {
        base: [json.loads(line) for line in tidemill("contract", "diff", "--base", base, "--json").out.splitlines()]
        for base in ("begun", "main^^", "main^", "rename", "HEAD")
    }
    told = {base: sorted(f"{c['contract']} {c['change']}" for c in of if "change" in c) for base, of in since.items()}
    assert told == {
        "begun": ["events rule-stricter", "totals contract-renamed"],
        "main^^": [],
        "main^": ["events contract-added"],
        "rename": ["events rule-stricter"],
        "HEAD": [],
    }


def test_two_files_of_one_contract_end_with_two(tidemill: Type, folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "sums.odcs.yaml").write_bytes((folder / "sums.odcs.yaml").read_bytes())
    change(folder / "sums.odcs.yaml", NEW)
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert (said.code, "two files are the contract `sums`" in said.err) == (2, True)


def test_contracts_whose_folder_is_gone_are_gone(tidemill: Type, folder: Path) -> None:
    shutil.rmtree(folder)
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert said.code == 1
    assert said.out.count("breaking: ") == 2


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "expected OLD and NEW, or --base REVISION, found 0 places"),
        (("data_contracts",), "expected OLD and NEW, or --base REVISION, found 1 place"),
        (("a", "b", "c"), "found 3 places"),
        (("a", "b", "--base", "HEAD"), "found 2 places and --base"),
        (("nothing", "data_contracts"), "nothing: there is no such file or folder"),
        (("--base", "HEAD", "-"), "--base compares a file with its revisions, and standard input (-) has none"),
        (("--base", "nope"), "--base nope: git knows no such revision"),
        (("--base", "--output=x"), "--base --output=x: git knows no such revision"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tidemill: Type, folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.chdir(folder.parent)
    said = tidemill("contract", "diff", *words)
    assert said.code == 5
    assert told in said.err


def test_the_help_names_every_exit_code(tidemill: Type) -> None:
    said = " ".join(tidemill("contract", "diff", "--help").out.split())
    assert all(f"{code} (" in said for code in (0, 1, 2, 5)), said


def test_a_folder_outside_of_git_is_refused(tidemill: Type, mill: Mill) -> None:
    said = tidemill("contract", "diff", "--base", "HEAD")
    assert said.code == 5
    assert "is in no repository of git" in said.err
