"""Contracts that are written in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from support.commands import type_command
from tidemill.contracts.files import contract_files
from tidemill.contracts.lint import lint
from tidemill.contracts.load import Contracts, load_contract
from tidemill.core.contract.contract import Between


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_a_contract_of_json_is_a_contract(tmp_path: Path, indent: int | str | None) -> None:
    plain = json.loads(
        """{"apiVersion": "v3.1.0", "kind": "DataContract", "id": "orders", "version": "1.0.0", "status": "active",
        "description": {"purpose": "A \\"smile\\" \\ud83d\\ude00\\/ \\\\ud83d"}, "schema": [{"name": "orders",
        "properties": [{"name": "n", "logicalType": "integer", "logicalTypeOptions": {"minimum": -1.5e0}}]}]}"""
    )
    separators = (",", ":") if indent is None else None
    path = tmp_path / "orders.odcs.json"
    path.write_text(json.dumps(plain, indent=indent, separators=separators), encoding="utf-8")
    assert contract_files(tmp_path) == [path]
    contract = Contracts(tmp_path)["orders"]
    assert (contract.name, contract.columns, contract.description) == ("orders", ("n",), 'A "smile" 😀/ \\ud83d')
    other = tmp_path / "in" / "orders.odcs.yaml"
    other.parent.mkdir()
    other.write_text(yaml.safe_dump(plain, allow_unicode=True), encoding="utf-8")
    assert load_contract(other).fingerprint == contract.fingerprint


def test_a_fault_of_json_has_its_line(tmp_path: Path) -> None:
    path = tmp_path / "orders.odcs.json"
    path.write_text('{\n\t"apiVersion": "v3.1.0",\n\t"kind": "DataContrct"\n}')
    assert any(f.line == 3 and "DataContrct" in f.message for f in lint(tmp_path))


def test_two_files_of_a_name_are_one_too_many(tmp_path: Path) -> None:
    for name in ("orders.odcs.json", "orders.odcs.yaml"):
        (tmp_path / name).write_text("{}")
    assert any("two files are the contract `orders`" in finding.message for finding in lint(tmp_path))


def test_commands_take_a_file_of_json(tmp_path: Path) -> None:
    path = tmp_path / "orders.odcs.json"
    path.write_text(
        '{"apiVersion": "v3.1.0", "kind": "DataContract", "id": "a", "version": "1.0.0", "status": "active", "schema": '
        '[{"name": "a", "properties": [{"name": "n", "logicalType": "integer", "required": true}]}]}'
    )
    assert type_command(None, "contract", "lint", path).code == 0
    said = type_command(None, "contract", "test", path, "-", given='{"n": 1}\n')
    assert (said.code, "1 of 1 rule holds" in said.out) == (0, True), said.out + said.err
    assert "CREATE TABLE" in type_command(None, "contract", "export", "sql", path).out


VALID = """{
  "apiVersion"
  : "v3.1.0", "kind": "DataContract",
  "id": "orders", "version": "1.0.0", "status": "active",
  "schema": [{"name": "orders", "properties": [
    {"name": "n", "logicalType": "integer", "logicalTypeOptions": {"minimum": 9007199254740993}}]}]
}"""


def test_json_is_read_as_json_and_not_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "orders.odcs.json"
    path.write_text("\ufeff" + VALID)
    contract = load_contract(path)
    assert [rule.check for rule in contract.table_rules] == [Between(column="n", minimum=9007199254740993)]


@pytest.mark.parametrize(
    ("before", "after", "place", "fix"),
    [
        ('"kind"', "'kind'", (3, 15), "JSON has double quotes only"),
        ('"kind"', "kind", (3, 15), "put the word in double quotes"),
        ('"active",', '"active"', (5, 3), "put a comma between two values, or close the bracket that is open"),
        ("}}]}]\n", "}}]}],\n", (7, 1), "remove the comma"),
        ("}}]}]", "}},]}]", (6, 98), "remove the comma"),
        ('"active"', "active", (4, 49), "put the word in double quotes"),
        ('"active"', '"active', (4, 57), "write \\n for the end of a line and \\t for a tab, and close the quotes"),
        ("9007199254740993", "NaN", (6, 0), "write a number, or null"),
        ("9007199254740993", "01", (6, 80), "put a comma between two values, or close the bracket that is open"),
        ("]\n}", "]\n} {}", (7, 3), "a file has one contract: remove what follows it"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(
    tmp_path: Path, before: str, after: str, place: tuple[int, int], fix: str
) -> None:
    path = tmp_path / "orders.odcs.json"
    path.write_text(VALID.replace(before, after))
    [found] = lint(path)
    assert (found.line, found.fix) == (place[0], fix), found
    assert found.message.startswith("not JSON: ")
    assert not place[1] or found.message.endswith(f" at column {place[1]}")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{"id": 1,\n"id": 2}', 2, "key `id` stands twice, first in line 1"),
        ("  \n", 1, "the document is empty"),
        ("\n" + "[" * 5_000, 2, "at most 100 levels"),
        ("[" + "1, " * 150_000 + "1]", 1, "at most 50,000 values"),
        ("1" * 600_000, 1, "at most 500,000 characters"),
        ('{"id": "\\ud83d"}', 1, "is half a character"),
        (f'{{"id": {"1" * 5_000}}}', 1, "apiVersion is nothing"),
    ],
)
def test_faults_of_json_are_findings(tmp_path: Path, text: str, line: int, said: str) -> None:
    path = tmp_path / "orders.odcs.json"
    path.write_text(text)
    assert [found for found in lint(path) if found.line == line and said in found.message], lint(path)
