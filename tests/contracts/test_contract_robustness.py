"""Whatever stands wherever in a contract file is a finding, and never an exception."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidemill.contracts.compile import compile_document
from tidemill.contracts.document import Node
from tidemill.contracts.findings import Findings
from tidemill.contracts.whole import Whole

RICH = """
apiVersion: v3.2.0
kind: DataContract
id: rich
version: 1.0.0
status: active
tags: [a]
description: {purpose: p}
team: {name: t, members: [{username: ada}]}
servers: [{server: a, type: local, path: p, format: json}]
customProperties: [{property: cost, value: 1}]
schema:
  - name: rich
    logicalType: object
    description: d
    customProperties: [{property: format, value: json}, {property: timestamp, value: iso}]
    quality:
      - {metric: rowCount, mustBeBetween: [1, 2]}
      - {metric: duplicateValues, mustBe: 0, arguments: {properties: [x, n]}}
      - {type: custom, engine: tidemill, implementation: n < m}
      - type: custom
        engine: greatExpectations
        implementation:
          type: expect_column_values_to_be_between
          kwargs: {column: n, min_value: 1, strict_min: true}
      - type: custom
        engine: greatExpectations
        implementation: "type: expect_column_pair_values_to_be_equal\\nkwargs: {column_A: n, column_B: m}"
    properties:
      - name: x
        logicalType: string
        required: true
        primaryKey: true
        primaryKeyPosition: 1
        enum: [{value: a}]
        logicalTypeOptions: {minLength: 1, maxLength: 2, pattern: a, format: uuid}
        quality:
          - {metric: missingValues, mustBe: 0, arguments: {missingValues: [null, a]}}
          - {metric: invalidValues, mustBe: 0, arguments: {validValues: [a], pattern: a}, severity: warning}
      - {name: n, logicalType: integer, logicalTypeOptions: {minimum: 1, multipleOf: 2, format: i64}}
      - {name: m, logicalType: number, physicalType: "decimal(9,2)", unique: true}
      - {name: t, logicalType: timestamp, logicalTypeOptions: {minimum: "2024-01-31", timezone: true}}
      - {name: d, logicalType: number, logicalTypeOptions: {minimum: 0}, enum: [{value: 1}]}
      - name: a
        logicalType: array
        logicalTypeOptions: {uniqueItems: true}
        items: {logicalType: object, properties: [{name: b, logicalType: date}]}
"""
ODD: list[Any] = [
    None,
    True,
    12,
    -1,
    1.5,
    "x",
    "",
    [],
    ["x"],
    [[]],
    {},
    {"x": "y"},
    [{"name": "x"}],
    2**70,
    -(10**400),
    1e300,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*path, key))


def replaced(document: Any, path: tuple[Any, ...], odd: Any) -> Any:
    if not path:
        return odd
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return changed


def as_node(value: Any, line: int = 1) -> Node:
    if isinstance(value, dict):
        return Node({str(key): as_node(child, line + 1) for key, child in value.items()}, line)
    return Node(tuple(as_node(item, line + 1) for item in value) if isinstance(value, list) else value, line)


@pytest.mark.parametrize("with_format", [True, False])
@pytest.mark.parametrize("every", [31, pytest.param(1, marks=pytest.mark.long)])
def test_an_odd_value_anywhere_is_a_finding_at_most(with_format: bool, every: int) -> None:
    document = yaml.safe_load(RICH)
    if not with_format:
        del document["schema"][0]["customProperties"]
    refused = 0
    # A prime that is no part of how many values there are: so each value comes to each 31st place.
    for place, odd in islice(product(places(document), ODD), 0, None, every):
        findings = Findings("rich.odcs.yaml")
        contract = compile_document(Whole(as_node(replaced(document, place, odd))), Path("rich.odcs.yaml"), findings)
        assert all(f.line >= 1 and f.message for f in findings.all), (place, odd)
        if not findings.all:
            assert contract is not None
            assert contract.fingerprint
        refused += bool(findings.all)
    assert refused > 1_000 // every
