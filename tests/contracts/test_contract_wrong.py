"""Contracts as people get them wrong: each is refused with exit code 5, file, line and, where there is one, a fix."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.commands import type_command
from tidemill.core.exit_code import ExitCode

RECORDS = """\
apiVersion: v3.2.0
kind: DataContract
id: payments
version: 1.0.0
status: active
slaProperties:
  - {property: latency, value: 4, unit: h}
schema:
  - name: payments
    logicalType: object
    description: One payment at a till.
    customProperties:
      - {property: format, value: csv}
    properties:
      - name: shop
        logicalType: string
        required: true
        description: where
        logicalTypeOptions: {minLength: 1, maxLength: 9, pattern: "[a-z]+"}
      - name: cents
        logicalType: integer
        description: total
        logicalTypeOptions: {minimum: 0, maximum: 900, multipleOf: 5}
      - {name: day, logicalType: date, description: when, logicalTypeOptions: {minimum: "2024-01-31"}}
      - {name: kind, logicalType: string, description: which, enum: [{value: cash}]}
    quality:
      - {type: custom, engine: tidemill, name: paid, implementation: "cents > 0 OR shop = 'x'"}
"""
ROWS = RECORDS.replace("    customProperties:\n      - {property: format, value: csv}\n", "").replace(
    RECORDS[RECORDS.index("      - {type: custom") :],
    "      - {metric: rowCount, mustBeLessThan: 9}\n",
)

TYPOS = [
    ("status: active", "statsu: active", "did you mean `status`?"),
    ("schema:", "shcema:", "did you mean `schema`?"),
    ("required: true", "requierd: true", "did you mean `required`?"),
    ("logicalType: integer", "logicaltype: integer", "did you mean `logicalType`?"),
    ("logicalTypeOptions: {minimum: 0", "logicalTypeOption: {minimum: 0", "did you mean `logicalTypeOptions`?"),
    ("minLength: 1", "minLenght: 1", "did you mean `minLength`?"),
    ("property: format", "property: formt", "did you mean `format`?"),
    ("value: csv", "value: cvs", "did you mean `csv`?"),
    ("property: latency", "property: latenzy", "did you mean `latency`?"),
    ("unit: h", "unit: houer", "did you mean `hour`?"),
    ("engine: tidemill", "engine: tidmill", "did you mean `tidemill`?"),
    ("type: custom", "type: costum", "did you mean `custom`?"),
    ("cents > 0", "cent > 0", "did you mean `cents`?"),
    ("enum: [{value: cash}]", "enum: [{valeu: cash}]", "did you mean `value`?"),
]
TYPES = [
    ("apiVersion: v3.2.0", "apiVersion: 3.2.0", "write apiVersion: v3.1.0"),
    ("apiVersion: v3.2.0", "apiVersion: v9.0.0", "write apiVersion: v3.1.0"),
    ("kind: DataContract", "kind: Table", "write kind: DataContract"),
    ("version: 1.0.0", "version: 1.0", "put it in quotes"),
    ("name: day", "name: 12", "put it in quotes"),
    ("required: true", "required: yes", "write true or false"),
    ("required: true", "required: 'true'", "write true or false"),
    ("required: true", "required: no", "write true or false"),
    ("required: true", "required: True", "write true or false"),
    ("minimum: 0", "minimum: 007", "remove the leading zeros"),
    ("minimum: 0", "minimum: '0'", "remove the quotes: 0"),
    ("minimum: 0", "minimum: 1_000", "remove the underscores"),
    ("multipleOf: 5", "multipleOf: -5", "a number above 0"),
    ("minLength: 1", "minLength: -1", ""),
    ('minimum: "2024-01-31"', "minimum: 31.01.2024", "write it like '2024-01-31'"),
    ("logicalType: integer", "logicalType: int", "write logicalType: integer"),
    ("logicalType: string\n", "logicalType: varchar(9)\n", "write logicalType: string"),
    ("enum: [{value: cash}]", "enum: [cash]", "write {value: cash}"),
    ("enum: [{value: cash}]", "enum: [{value: no}, {value: 1}]", "put it in quotes: '1'"),
    ("enum: [{value: cash}]", "enum: []", "list the values, or remove it"),
    ("enum: [{value: cash}]", "enum: cash", "start each item with a dash"),
    ("value: 4", "value: many", "write a number as value"),
]
MEANING = [
    ("minimum: 0, maximum: 900", "minimum: 900, maximum: 0", "exchange them"),
    ("minLength: 1, maxLength: 9", "minLength: 9, maxLength: 1", "exchange them"),
    ("name: cents", "name: Shop", "rename or remove one of them"),
    ('"[a-z]+"', '"[a-z+"', ""),
    ('"[a-z]+"', '"(?=a)b"', ""),
    ("cents > 0", "cents + 1", ""),
    ("cents > 0", "foo(cents) > 0", ""),
    ("cents > 0", "cents >> > 0", ""),
    ("cents > 0", "rand() > 0", ""),
    ("status: active", "status: active\nid: payments", "remove one of them"),
    ("required: true", "required: true\n        primaryKey: true", "put it into the contract of the published table"),
    ("quality:", "quality: [{metric: rowCount, mustBe: 1}]\n    tags:", "table"),
]
YAML = [
    ("    properties:", "\tproperties:", "indent with blanks"),
    ("description: where", "description: 'where", "close the quotes"),
    ("description: where", "description: where: when", "put a text that has a colon in quotes"),
    ("id: payments", "id: *payments", "write the value out"),
    ("description: where", "description: !text where", "remove the tag"),
    ("enum: [{value: cash}]", "enum: [{value: cash}", "close"),
]
OF_ROWS = [
    ("metric: rowCount", "metric: rowcount", "did you mean `rowCount`?"),
    ("mustBeLessThan: 9", "mustBeLesThan: 9", "did you mean `mustBeLessThan`?"),
    ("mustBeLessThan: 9", "mustBeLessThan: '9'", "remove the quotes: 9"),
    ("mustBeLessThan: 9", "mustBeBetween: [9, 1]", "exchange them"),
    ("mustBeLessThan: 9", "mustBeLessThan: 9, unit: percnt", "did you mean `percent`?"),
    (
        "{metric: rowCount, mustBeLessThan: 9}",
        "{type: custom, engine: greatExpectations, implementation: "
        "{type: expect_column_maen_to_be_between, kwargs: {column: cents, min_value: 1}}}",
        "did you mean `expect_column_mean_to_be_between`?",
    ),
]
NESTED = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}' if n else 'x'] * 9)}]\n" for n in range(9)).encode()
FILES: list[tuple[str, bytes, str]] = [
    ("empty.odcs.yaml", b"", "start from one of"),
    ("utf16.odcs.yaml", RECORDS.encode("utf-16"), "save the file as UTF-8"),
    ("latin1.odcs.yaml", RECORDS.replace("where", "wo für").encode("latin-1"), "save the file as UTF-8"),
    ("aliases.odcs.yaml", NESTED, "without aliases"),
    ("list.odcs.yaml", b"- apiVersion: v3.2.0\n", ""),
    ("contract.json", b"[]", ""),
]
Lint = Callable[[Path], tuple[int, str]]


@pytest.fixture
def lint() -> Lint:
    def run(path: Path) -> tuple[int, str]:
        before = time.monotonic()
        said = type_command(None, "contract", "lint", path)
        print(f"{time.monotonic() - before:.2f} s {path.name}")
        return said.code, " ".join((said.out + said.err).split())

    return run


def test_the_contract_itself_is_right(tmp_path: Path, lint: Lint) -> None:
    path = tmp_path / "payments.odcs.yaml"
    path.write_text(RECORDS, encoding="utf-8")
    assert lint(path)[0] == ExitCode.DONE
    path.write_text(ROWS, encoding="utf-8")
    assert lint(path)[0] == ExitCode.DONE
    path.write_text("\ufeff" + RECORDS, encoding="utf-8")
    assert lint(path)[0] == ExitCode.DONE, "a mark of the order of bytes is no fault"


@pytest.mark.parametrize(("before", "after", "fix"), [*TYPOS, *TYPES, *MEANING, *YAML, *OF_ROWS])
def test_a_wrong_contract_is_refused_in_its_line(tmp_path: Path, lint: Lint, before: str, after: str, fix: str) -> None:
    text = ROWS if (before, after, fix) in OF_ROWS else RECORDS
    assert before in text
    path = tmp_path / "payments.odcs.yaml"
    path.write_text(text.replace(before, after, 1), encoding="utf-8")
    first = text[: text.index(before)].count("\n") + 1
    code, said = lint(path)
    lines = {int(n) for n in re.findall(r"payments\.odcs\.yaml:(\d+): error", said)}
    assert code == ExitCode.WRONG, said
    assert lines & set(range(first, first + after.count("\n") + 2)), said
    assert fix in said


@pytest.mark.parametrize(("name", "content", "fix"), FILES)
def test_a_file_that_cannot_be_a_contract_is_refused(
    tmp_path: Path, lint: Lint, name: str, content: bytes, fix: str
) -> None:
    (tmp_path / name).write_bytes(content)
    code, said = lint(tmp_path / name)
    assert code == ExitCode.WRONG, said
    assert f"{name}:" in said
    assert fix in said


def test_a_folder_without_a_contract_is_refused(tmp_path: Path, lint: Lint) -> None:
    (tmp_path / "payments.txt").write_text(RECORDS, encoding="utf-8")
    code, said = lint(tmp_path)
    assert (code, "no contract in this folder" in said) == (ExitCode.WRONG, True)


def test_there_are_enough_of_them() -> None:
    assert len([*TYPOS, *TYPES, *MEANING, *YAML, *OF_ROWS, *FILES]) >= 52
