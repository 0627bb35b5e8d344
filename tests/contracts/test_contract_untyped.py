"""A wrong type, or a wrong version, hides nothing else that is wrong, and makes no faults of what is right."""

from __future__ import annotations

from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint

WRONG = """
- name: id
  logicalType: strin
  primaryKey: true
  logicalTypeOptions: {minLenght: 3, pattern: "(a", minItems: -1}
  enum: []
  foo: bar
  quality:
    - {metric: nullValue, mustBe: 0}
    - {metric: missingValues, mustBe: 0, arguments: {missingValues: [a]}, severity: eror}
    - {metric: invalidValues, mustBe: 0, arguments: {pattern: "[b"}}
    - {type: custom, engine: tidemil, implementation: "id > 0"}
    - {type: custom, engine: tidemill, implementation: "idd > 0"}
- {name: cents, logicalType: number, physicalType: "decimal(99,2)", logicalTypeOptions: {minimun: 3, pattern: a}}
- {name: ID, logicalType: string}
"""
FAULTS = (
    "logicalType `strin` cannot be run",
    "`id`.minLenght: unknown option",
    "`id`.pattern: not a regular expression",
    "`id`.minItems: expected a whole number",
    "`id`.enum is empty",
    "unknown key `foo`",
    "metric nullValue: unknown",
    "severity is the text 'eror'",
    "metric invalidValues: the pattern cannot be used",
    "engine `tidemil` cannot be run",
    "the predicate reads `idd`, but the contract has no such property; it has id, cents",
    "physicalType `decimal(99,2)` cannot be run",
    "`cents`.minimun: unknown option",
    "`cents`.pattern: cannot be run for this type",
    "property `ID` stands twice",
)
RIGHT = """
- name: id
  logicalType: strin
  primaryKey: true
  logicalTypeOptions: {minLength: 3, pattern: "[a-z]+", format: uuid}
  enum: [{value: a}]
  quality:
    - {metric: invalidValues, mustBe: 0, arguments: {pattern: "[a-z]+", validValues: [1]}}
    - {metric: duplicateValues, mustBe: 0}
    - {type: custom, engine: tidemill, implementation: "id > 'a' AND id.a = 1"}
- {name: cents, logicalType: number, physicalType: "decimal(99,2)", logicalTypeOptions: {minimum: 3, multipleOf: 5}}
- {name: tags, logicalType: array, items: {logicalType: txt}, logicalTypeOptions: {maxItems: 2}}
- {name: ends, logicalType: string, quality: [{metric: nullValues, mustBe: 0}]}
"""
RULES = """
- {metric: duplicateValues, mustBe: 0, arguments: {properties: [id, cents]}}
- {type: custom, engine: tidemill, name: q, implementation: "cents > 0 AND ends <> id"}
- {type: custom, engine: tidemill, name: r, implementation: "array_size(tags) < 3"}
"""


def _errors(path: Any) -> list[str]:
    return [finding.message for finding in lint(path) if finding.severity is Level.ERROR]


def test_a_wrong_type_hides_nothing_else(file: Any) -> None:
    found = _errors(file.an_output(WRONG))
    assert [fault for fault in FAULTS if not any(fault in message for message in found)] == []
    assert len(found) == len(FAULTS), found


def test_a_wrong_type_makes_no_faults_of_rules(file: Any) -> None:
    path = file.an_output(RIGHT, quality=RULES)
    found = _errors(path)
    assert len(found) == 3, found
    assert [" cannot be run" in message for message in found] == [True] * 3
    assert not [f for f in lint(path) if "no rule" in f.message or "no primary key" in f.message]


@pytest.mark.parametrize("version", ["apiVersion: v9.0.0\n", "apiVersion: 3\n", ""])
def test_a_wrong_version_hides_nothing_else(file: Any, version: str) -> None:
    path = file.an_output(WRONG)
    text = path.read_text(encoding="utf-8").replace("apiVersion: v3.2.0\n", version)
    path.write_text(text.replace("DataContract", "Table").replace("status", "statsu"), encoding="utf-8")
    found = _errors(path)
    assert len([message for message in found if message.startswith(("apiVersion", "`apiVersion"))]) == 1
    for fault in (*FAULTS, "apiVersion is ", "kind is the text 'Table'", "unknown key `statsu`"):
        assert len([message for message in found if fault in message]) == 1, fault


@pytest.mark.parametrize("text", ["apiVersion: v2.2.2\nkind: DataContract\ndatasetName: a\n", "info: {title: a}\n"])
def test_of_another_standard_only_that_is_said(file: Any, text: str) -> None:
    (found,) = _errors(file.write(text))
    assert "apiVersion is " in found


def test_a_fault_with_every_type_is_told_without_a_type(file: Any) -> None:
    columns = """
- name: id
  logicalType: strin
  primaryKey: true
  quality: [{type: custom, engine: tidemill, implementation: "size(map_keys(id)) > 0"}]
"""
    [found] = [message for message in _errors(file.an_output(columns)) if "map_keys" in message]
    assert "`map_keys` takes a map as argument 1, but `id` is a value of another type" in found
