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
