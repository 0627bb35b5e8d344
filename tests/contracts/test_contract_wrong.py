"""Contracts as people get them wrong: each is refused with exit code 5, file, line and, where there is one, a fix."""

from __future__ import annotations

import os
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
    ("engine: tidemill, name: paid", "engine: tidemill, severity: eror, name: paid", "did you mean `error`?"),
    ("maxLength: 9", "maxLength: 9, format: uudi", "did you mean `uuid`?"),
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
    ("minimum: 0", "minimum: --007", ""),
    ("minimum: 0", "minimum: 0\u00b2", ""),
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
    ('"[a-z]+"', '"(?=a)b"', "more than linear"),
    ('"[a-z]+"', r"'\u0061'", "RE2 does not know"),
    ('"[a-z]+"', r"'a\Z'", "use characters, classes"),
    ("cents > 0", "cents + 1", ""),
    ("cents > 0", "foo(cents) > 0", ""),
    ("cents > 0", "cents >> > 0", ""),
    ("cents > 0", "rand() > 0", ""),
    ("status: active", "status: active\nid: payments", "remove one of them"),
    ("required: true", "required: true\n        primaryKey: true", "put it into the contract of the published table"),
    ("quality:", "quality: [{metric: rowCount, mustBe: 1}]\n    tags:", "table"),
]
NOTHING_PASSES = [
    ('minimum: "2024-01-31"', 'minimum: "2024-01-31", maximum: "2024-01-30"', "exchange them"),
    ('minimum: "2024-01-31"', 'exclusiveMinimum: "2024-01-31", maximum: "2024-01-31"', "no value is between"),
    ("minimum: 0, maximum: 900", "exclusiveMinimum: 5, exclusiveMaximum: 6", "no value is between"),
    ("minimum: 0, maximum: 900", "minimum: 9223372036854775808", "wider physicalType"),
    ("minimum: 0, maximum: 900", "maximum: -9223372036854775809", "wider physicalType"),
    ("multipleOf: 5}", "multipleOf: 5}\n        enum: [{value: 950}]", "because maximum is 900"),
    ("multipleOf: 5}", "multipleOf: 5}\n        enum: [{value: 5}, {value: -5}]", "because minimum is 0"),
]
OF_SPARK = [
    ("cents > 0", "day > cents", "cannot make them one type"),
    ("cents > 0", "day in (1, 2)", "cannot make them one type"),
    ("cents > 0", "coalesce(cents, day) is not null", "cannot make them one type"),
    ("cents > 0", "shop like 'a' escape 'bb'", "is no single character"),
    ("cents > 0", "shop in ()", "list the values"),
    ("cents > 0", "length(repeat(shop, 2000000000)) > 0", "written as numbers, up to 100,000"),
    ("cents > 0", "length(space(cents)) > 0", "written as numbers, up to 100,000"),
    ("cents > 0", "size(sequence(0, 1000000000)) > cents", "written as numbers, up to 100,000"),
    ("name: cents", '"name": "ce\\"nts"', "rename the property"),
    ("name: cents", r'"name": "ce\nnts"', "rename the property"),
    ("name: cents", r"name: ce\nts", "rename the property"),
    ("name: paid", r'name: "paid\n::error::"', "control characters are no part of names"),
]
YAML = [
    ("    properties:", "\tproperties:", "indent with blanks"),
    ("description: where", "description: 'where", "close the quotes"),
    ("description: where", "description: where: when", "put a text that has a colon in quotes"),
    ("id: payments", "id: *payments", "write the value out"),
    ("description: where", "description: !text where", "remove the tag"),
    ("description: where", "<<: {description: where}", "write the keys out"),
    ("schema:", "---\nschema:", "a file of its own"),
    ("enum: [{value: cash}]", "enum: [{value: cash}, {value: cash}]", "has an item twice"),
    ("enum: [{value: cash}]", "enum: [{value: cash}", "close"),
]
OF_ROWS = [
    ("metric: rowCount", "metric: rowcount", "did you mean `rowCount`?"),
    ("mustBeLessThan: 9", "mustBeLesThan: 9", "did you mean `mustBeLessThan`?"),
    ("mustBeLessThan: 9", "mustBeLessThan: '9'", "remove the quotes: 9"),
    ("mustBeLessThan: 9", "mustBeBetween: [9, 1]", "exchange them"),
    ("mustBeLessThan: 9", "mustBeLessThan: 0", "no number of rows"),
    (
        "rowCount, mustBeLessThan: 9",
        "duplicateValues, arguments: {properties: [shop, shop]}, mustBe: 0",
        "a column twice",
    ),
    ("when,", "when, quality: [{metric: nullValues, mustBe: 0.5}],", "no number of rows"),
    ("when,", "when, quality: [{metric: nullValues, mustNotBeBetween: [0, 100], unit: percent}],", "no number of rows"),
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
    ("empty.odcs.yaml", b"", "start from a contract of the guide"),
    ("utf16.odcs.yaml", RECORDS.encode("utf-16"), "save it as UTF-8"),
    ("utf16be.odcs.yaml", RECORDS.encode("utf-16-be"), "not UTF-8: it is UTF-16BE fix: save it as UTF-8: iconv -f"),
    ("utf16le.odcs.yaml", RECORDS.encode("utf-16-le"), "not UTF-8: it is UTF-16LE fix: save it as UTF-8: iconv -f"),
    ("utf32.odcs.yaml", RECORDS.encode("utf-32"), "not UTF-8: it is UTF-32 fix: save it as UTF-8: iconv -f"),
    ("zero.odcs.yaml", RECORDS.replace("till", "ti\0ll").encode(), "unacceptable character"),
    ("a#b.yaml", RECORDS.encode(), "between a file and one of its schema objects fix: rename the file to a_b.yaml"),
    ("latin1.odcs.yaml", RECORDS.replace("where", "wo für").encode("latin-1"), "save the file as UTF-8"),
    ("aliases.odcs.yaml", NESTED, "without aliases"),
    ("list.odcs.yaml", b"- apiVersion: v3.2.0\n", ""),
    ("contract.json", b"[]", ""),
]
MOST_SECONDS = 3
"""Of the processor: a busy machine makes no test fail."""

Lint = Callable[[Path], tuple[int, str]]


@pytest.fixture
def lint() -> Lint:
    def run(path: Path) -> tuple[int, str]:
        before = time.process_time()
        said = type_command(None, "contract", "lint", path)
        assert time.process_time() - before < MOST_SECONDS
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


@pytest.mark.parametrize(
    ("before", "after", "fix"), [*TYPOS, *TYPES, *MEANING, *NOTHING_PASSES, *OF_SPARK, *YAML, *OF_ROWS]
)
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


@pytest.mark.parametrize("name", ["gone.odcs.yaml", "folder.odcs.yaml", "far/there.odcs.yaml"])
def test_what_is_called_like_a_contract_and_is_none_is_refused(tmp_path: Path, lint: Lint, name: str) -> None:
    folder = tmp_path / "contracts"
    folder.mkdir()
    (folder / "payments.odcs.yaml").write_text(RECORDS, encoding="utf-8")
    match name:
        case "gone.odcs.yaml":
            (folder / name).symlink_to(tmp_path / "nothing")
        case "folder.odcs.yaml":
            (folder / name).mkdir()
        case _:
            (tmp_path / "elsewhere").mkdir()
            (tmp_path / "elsewhere" / "there.odcs.yaml").write_text("kind: DataContract\n", encoding="utf-8")
            (folder / "far").symlink_to(tmp_path / "elsewhere")
            (folder / "round").symlink_to(folder)
    code, said = lint(folder)
    assert (code, f"{name}:1: error" in said, said.count("error:")) == (ExitCode.WRONG, True, 1), said


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path, lint: Lint) -> None:
    os.mkfifo(tmp_path / "payments.odcs.yaml")
    code, said = lint(tmp_path / "payments.odcs.yaml")
    assert (code, "it is a pipe" in said) == (ExitCode.WRONG, True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mustBeLessThan: 500, unit: percent", "nullValues"),
        ("mustBeBetween: [0, 100], unit: percent", "nullValues"),
        ("mustBeGreaterOrEqualTo: 0", "nullValues"),
    ],
)
def test_a_rule_that_always_holds_is_pointed_out(tmp_path: Path, lint: Lint, key: str, value: str) -> None:
    path = tmp_path / "payments.odcs.yaml"
    path.write_text(ROWS.replace("when,", f"when, quality: [{{metric: {value}, {key}}}],"), encoding="utf-8")
    code, said = lint(path)
    assert (code, "the rule checks nothing" in said) == (ExitCode.DONE, True), said


@pytest.mark.parametrize(
    ("predicate", "instead"),
    [
        ("split(shop, 'x')[10] = 'a'", "get(array"),
        ("xpath_int(shop, 'a') > 1", ""),
        ("parse_url(shop, 'HOST') = shop", "try_"),
    ],
)
def test_a_predicate_that_some_value_makes_fail_is_pointed_out(
    tmp_path: Path, lint: Lint, predicate: str, instead: str
) -> None:
    path = tmp_path / "payments.odcs.yaml"
    path.write_text(RECORDS.replace("cents > 0 OR shop = 'x'", predicate), encoding="utf-8")
    code, said = lint(path)
    assert (code, "fails the whole batch" in said, instead in said) == (ExitCode.DONE, True, True), said


def test_there_are_enough_of_them() -> None:
    assert len([*TYPOS, *TYPES, *MEANING, *NOTHING_PASSES, *OF_SPARK, *YAML, *OF_ROWS, *FILES]) >= 52
