"""Findings about contracts as systems of CI read them, and contracts on standard input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import xmlschema
from jsonschema import Draft7Validator  # type: ignore[import-untyped]

from cli.conftest import Type
from support.projects import ROOT, SUMS_CONTRACT, Mill
from tidemill.cli.reports.github import github
from tidemill.cli.reports.junit import junit
from tidemill.cli.reports.remark import Remark, inside
from tidemill.cli.reports.sarif import sarif
from tidemill.contracts.findings import Level

SCHEMAS = ROOT / "tests" / "data" / "schemas"
HOSTILE = 'a: b, 100 % <x & "y">\nsecond line\r\x00\x1b[31m ]]> \ud83d ::error::'
WRONG = SUMS_CONTRACT.replace("logicalType: integer, required", "logicalType: integr, required")


def a_remark(level: Level = Level.ERROR, **more: Any) -> Remark:
    values = {"rule": "field-removed", "message": "gone", "file": "contracts/a b.odcs.yaml", "line": 3, **more}
    return Remark(level=level, **values)


@pytest.fixture(scope="module")
def is_junit() -> Any:
    return xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd").validate


def check_sarif(text: str) -> dict[str, Any]:
    found = json.loads(text)
    Draft7Validator(json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())).validate(found)
    return dict(found)


@pytest.mark.parametrize("level", Level)
def test_any_text_gives_valid_reports(level: Level, is_junit: Any, tmp_path: Path) -> None:
    remark = a_remark(level, message=HOSTILE, fix=HOSTILE, rule=HOSTILE, file=str(tmp_path / HOSTILE[5:30]))
    is_junit(junit("contract lint", [remark.file, "other.yaml"], [remark], [Level.ERROR]))
    check_sarif(sarif("contract lint", [remark]))
    assert len(github([remark]).splitlines()) == 1


def test_reports_without_findings_are_valid(is_junit: Any) -> None:
    is_junit(junit("contract lint", [], [], [Level.ERROR]))
    assert check_sarif(sarif("contract lint", []))["runs"][0]["results"] == []
    assert not github([])


def test_annotations_have_place_level_and_text() -> None:
    remarks = [a_remark(level, message="50 %: gone", fix="add it") for level in Level]
    place = "file=contracts/a b.odcs.yaml,line=3,title=field-removed"
    said = "50 %25: gone%0Afix: add it"
    assert github(remarks).splitlines() == [f"::{kind} {place}::{said}" for kind in ("error", "warning", "notice")]
    assert "file=a%2Cb%3Ac.yaml," in github([a_remark(file="a,b:c.yaml")])


def test_only_findings_that_fail_are_failures_of_junit() -> None:
    remarks = [a_remark(Level.ERROR), a_remark(Level.WARNING)]
    strict = junit("contract lint", [], remarks, [Level.ERROR, Level.WARNING])
    mild = junit("contract lint", ["whole.yaml"], remarks, [Level.ERROR])
    assert ('tests="2" failures="2"' in strict, 'tests="3" failures="1"' in mild) == (True, True)
    assert 'classname="whole.yaml"' in mild


def test_files_are_named_by_their_place_in_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "shop" / "data_contracts" / "sums.odcs.yaml"
    assert inside(str(file), {}) == str(file)
    assert inside(str(file), {"GITHUB_WORKSPACE": str(tmp_path)}) == "shop/data_contracts/sums.odcs.yaml"
    assert inside(str(file), {"CI_PROJECT_DIR": str(tmp_path / "shop")}) == "data_contracts/sums.odcs.yaml"
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    assert inside("data_contracts/sums.odcs.yaml", {"GITHUB_WORKSPACE": str(tmp_path)}) == (
        "shop/data_contracts/sums.odcs.yaml"
    )


def test_lint_reports_in_each_format(tidemill: Type, tmp_path: Path, is_junit: Any) -> None:
    file = tmp_path / "data_contracts" / "sums.odcs.yaml"
    file.write_text(WRONG)
    line = next(n for n, text in enumerate(WRONG.splitlines(), 1) if "integr," in text)
    said = {form: tidemill("contract", "lint", "--format", form) for form in ("json", "github", "junit", "sarif")}
    assert {each.code for each in said.values()} == {5}
    assert said["json"].out == tidemill("contract", "lint", "--json").out
    assert f"::error file={file},line={line},title=contract-error::" in said["github"].out
    is_junit(said["junit"].out)
    assert "<failure " in said["junit"].out
    results = check_sarif(said["sarif"].out)["runs"][0]["results"]
    assert "error" in {result["level"] for result in results}
    asked = tidemill("contract", "lint", "--json", "--format", "junit")
    assert (asked.code, "ask for different formats" in asked.err) == (5, True)


def test_lint_fails_with_warnings_if_it_is_told_to(tidemill: Type) -> None:
    assert tidemill("contract", "lint").code == 0
    said = tidemill("contract", "lint", "--fail-on", "warning")
    assert (said.code, "no errors" in said.out) == (5, True)


def test_a_contract_on_standard_input(tidemill: Type, tmp_path: Path) -> None:
    said = tidemill("contract", "lint", "-", given=SUMS_CONTRACT)
    assert (said.code, said.out.splitlines()[-1][:21]) == (0, "1 contract, no errors")
    assert "the file" not in said.out
    wrong = tidemill("contract", "lint", "-", given=WRONG)
    assert (wrong.code, wrong.out.startswith("-:")) == (5, True)
    assert str(tmp_path) not in wrong.out
    file = tmp_path / "data_contracts" / "sums.odcs.yaml"
    changed = SUMS_CONTRACT.replace("amount, logicalType: integer", "amount, logicalType: string")
    diff = tidemill("contract", "diff", file, "-", given=changed)
    assert (diff.code, diff.out.startswith("-:")) == (1, True)
    twice = tidemill("contract", "diff", "-", "-", given=changed)
    assert (twice.code, "only once" in twice.err) == (5, True)
    binary = tidemill("contract", "lint", "-", given=b"\xff\xfe\x00")
    assert (binary.code, "-:1: " in binary.out) == (5, True)


def test_diff_reports_in_each_format(tidemill: Type, tmp_path: Path, is_junit: Any) -> None:
    old, new = tmp_path / "data_contracts" / "sums.odcs.yaml", tmp_path / "new.odcs.yaml"
    new.write_text(SUMS_CONTRACT.replace("amount, logicalType: integer", "amount, logicalType: string"))
    said = {form: tidemill("contract", "diff", old, new, "--format", form) for form in ("github", "junit", "sarif")}
    assert {each.code for each in said.values()} == {1}
    assert "::error file=" in said["github"].out
    assert "title=type-changed::" in said["github"].out
    is_junit(said["junit"].out)
    [result, version] = check_sarif(said["sarif"].out)["runs"][0]["results"]
    assert (result["ruleId"], result["level"], version["level"]) == ("type-changed", "error", "warning")
    new.write_text(WRONG)
    broken = tidemill("contract", "diff", old, new, "--format", "sarif")
    assert broken.code == 2
    assert check_sarif(broken.out)["runs"][0]["results"][0]["level"] == "error"


def test_every_command_takes_a_contract_of_standard_input(tidemill: Type, mill: Mill) -> None:
    text = (mill.project.folder / "data_contracts" / "events.odcs.yaml").read_bytes()
    records = mill.project.folder / "records"
    records.write_bytes(b'{"ts": "2026-01-01T00:00:00Z", "amount": "no"}')
    tried = tidemill("contract", "test", "-", records, given=text)
    assert (tried.code, "-:" in tried.out) == (5, True), tried
    assert '"name": "events"' in tidemill("contract", "export", "avro", "-", given=text).out
    wrong = tidemill(
        "contract", "export", "avro", "-", given=text.replace(b"logicalType: string", b"logicalType: strng")
    )
    assert (wrong.code, "error: -:" in wrong.err, "tidemill-stdin" in wrong.err) == (5, True, False)
    twice = tidemill("contract", "test", "-", "-", given=text)
    assert (twice.code, "can be read only once" in twice.err) == (5, True)


def test_files_of_other_formats_come_by_standard_input(tidemill: Type) -> None:
    made = tidemill("contract", "import", "sql", "-", given="CREATE TABLE shops (id BIGINT NOT NULL)")
    assert (made.code, "name: shops" in made.out, "Imported from standard input." in made.out) == (0, True, True)
    wrong = tidemill("contract", "import", "sql", "-", given="CREATE TABLE (")
    assert (wrong.code, "error: -:1: not SQL" in wrong.err) == (5, True), wrong


def test_a_name_of_a_file_that_is_no_utf_8_is_reported(tmp_path: Path) -> None:
    file = os.fsdecode(os.fsencode(tmp_path / "a") + b"\xff.odcs.yaml")
    check_sarif(sarif("contract lint", [a_remark(file=file), a_remark(file=os.path.relpath(file, tmp_path))]))


def test_a_file_that_is_named_in_several_ways_counts_once(tidemill: Type, tmp_path: Path) -> None:
    file = tmp_path / "data_contracts" / "sums.odcs.yaml"
    said = tidemill("contract", "lint", file, file, file.parent)
    assert said.out.splitlines()[-1] == tidemill("contract", "lint", file.parent).out.splitlines()[-1]
