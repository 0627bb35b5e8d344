"""A fingerprint changes with what a contract means, and with nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemill.contracts.load import load_contract

TEXT = """\
apiVersion: v3.2.0
kind: DataContract
id: orders
version: 1.0.0
status: active
schema:
  - name: orders
    description: Orders.
    properties:
      - name: id
        logicalType: integer
        primaryKey: true
        description: Number of the order.
      - name: amount
        logicalType: number
        physicalType: decimal(9,2)
        logicalTypeOptions:
          minimum: 0
        quality:
          - {name: small, metric: invalidValues, arguments: {validValues: [1, 2.5]}, mustBe: 0, severity: warning}
"""


@pytest.fixture
def fingerprint(tmp_path: Path) -> Callable[..., str]:
    def of(text: str, name: str = "orders") -> str:
        path = tmp_path / f"{name}.odcs.yaml"
        path.write_text(text, encoding="utf-8")
        return load_contract(path).fingerprint

    return of


def test_a_fingerprint_is_a_sha256(fingerprint: Callable[..., str]) -> None:
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(TEXT))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("status: active", "# a comment\n\nstatus: draft"),
        ("version: 1.0.0", "version: 2.0.0"),
        ("description: Number of the order.", "description: Another text."),
        ("description: Orders.", "tags: [a]"),
        ("apiVersion: v3.2.0", "apiVersion: v3.1.0"),
        ("minimum: 0", "minimum: 0.0"),
        ("name: id\n        logicalType: integer", "logicalType: integer\n        name: id"),
        ("physicalType: decimal(9,2)", "physicalType: DECIMAL(9, 2)"),
    ],
)
def test_layout_and_descriptions_do_not_change_it(fingerprint: Callable[..., str], before: str, after: str) -> None:
    assert before in TEXT
    assert fingerprint(TEXT.replace(before, after)) == fingerprint(TEXT)


def test_the_name_of_the_file_does_not_change_it(fingerprint: Callable[..., str]) -> None:
    assert fingerprint(TEXT, "a") == fingerprint(TEXT, "b")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("minimum: 0", "minimum: 1"),
        ("minimum: 0", "exclusiveMinimum: 0"),
        ("minimum: 0", "maximum: 0"),
        ("decimal(9,2)", "decimal(9,3)"),
        ("logicalType: integer", "logicalType: string"),
        ("primaryKey: true", "required: true"),
        ("name: id", "name: number"),
        ("name: small", "name: tiny"),
        ("severity: warning", "severity: error"),
        ("[1, 2.5]", "[1, 2.6]"),
        ("logicalTypeOptions:", "required: true\n        logicalTypeOptions:"),
        (
            "    properties:\n",
            "    customProperties: [{property: format, value: json}]\n    properties:\n",
        ),
    ],
)
def test_every_change_of_meaning_changes_it(fingerprint: Callable[..., str], before: str, after: str) -> None:
    text = TEXT.replace("        primaryKey: true\n", "") if "format" in after else TEXT
    assert before in text
    assert fingerprint(text.replace(before, after)) != fingerprint(text)


def test_formats_and_their_options_change_it(fingerprint: Callable[..., str]) -> None:
    text = TEXT.replace("        primaryKey: true\n", "")
    custom = "    customProperties: [{property: format, value: %s}%s]\n    properties:\n"
    found = {
        fingerprint(text.replace("    properties:\n", custom % (word, more)))
        for word, more in [
            ("json", ""),
            ("csv", ""),
            ("json", ", {property: extraFields, value: reject}"),
            ("json", ", {property: timestamp, value: epoch_s}"),
        ]
    }
    assert len(found) == 4
