"""Whatever cannot be run is refused, with the line where it stands and what is supported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemill.contracts.findings import Level
from tidemill.contracts.lint import Finding, lint
from tidemill.contracts.load import load_contract
from tidemill.core.errors import ContractError

TheError = Callable[..., Finding]
COLUMN = "- {name: x, logicalType: string}"


@pytest.mark.parametrize(
    ("property_", "at", "words"),
    [
        ("- name: x # HERE", "HERE", "property `x` has no logicalType"),
        ("- logicalType: string # HERE", "HERE", "`name` is missing"),
        ("- {name: x, logicalType: uuid} # HERE", "HERE", "logicalType `uuid` cannot be run; supported: string,"),
        ("- {name: x, logicalType: time} # HERE", "HERE", "logicalType `time` cannot be run"),
        ("- {name: x, logicalType: vector} # HERE", "HERE", "logicalType `vector` cannot be run"),
        (
            "- {name: x, logicalType: map, map: {}} # HERE",
            "HERE",
            "logicalType `map` cannot be run|`map` of property `x`",
        ),
        ("- {name: x, logicalType: number, physicalType: 'decimal(39,2)'} # HERE", "HERE", "`decimal(39,2)`"),
        ("- {name: x, logicalType: number, physicalType: 'decimal(2,3)'} # HERE", "HERE", "`decimal(2,3)`"),
        (
            "- {name: x, logicalType: string, items: {logicalType: string}} # HERE",
            "HERE",
            "belongs to logicalType array",
        ),
        ("- {name: x, logicalType: string, properties: []} # HERE", "HERE", "belongs to logicalType object"),
        (
            "- {name: x, logicalType: array, items: {logicalType: string, required: true}} # HERE",
            "HERE",
            "`required` cannot be run for the items of an array",
        ),
        (f"{COLUMN}\n- {{name: X, logicalType: date}} # HERE", "HERE", "property `X` stands twice, first in line"),
        ("- {name: x, logicalType: string, relationships: [{to: a.b}]} # HERE", "HERE", "foreign keys are not checked"),
        ("- {name: x, logicalType: string, semanticType: measure} # HERE", "HERE", "a measure is no column"),
        ("- {name: x, logicalType: string, requierd: true} # HERE", "HERE", "unknown key `requierd` in a property"),
        ("- {name: x, logicalType: string, required: yes} # HERE", "HERE", "`required`: expected true or false"),
        ("- {name: x, logicalType: string, tags: a} # HERE", "HERE", "`tags`: expected a list, found the text 'a'"),
        (
            "- {name: x, logicalType: string, description: } # HERE",
            "HERE",
            "`description`: expected text, found nothing",
        ),
        ("- {name: 12, logicalType: string} # HERE", "HERE", "`name`: expected text, found the number 12"),
        ("- {name: a b, logicalType: string} # HERE", "HERE", "a Delta table cannot have a column called 'a b'"),
        ("- {name: Batch_Id, logicalType: integer} # HERE", "HERE", "is added to every published table"),
        ("- {name: published_at, logicalType: timestamp} # HERE", "HERE", "is added to every published table"),
        (
            "- {name: x, logicalType: string, primaryKeyPosition: 1} # HERE",
            "HERE",
            "primaryKeyPosition without primaryKey",
        ),
        (
            "- {name: x, logicalType: string, primaryKey: true, primaryKeyPosition: 2} # HERE",
            "HERE",
            "the positions of the primary key's 1 columns are [2]",
        ),
        (
            "- {name: x, logicalType: object, properties: [{name: y, logicalType: string, unique: true}]} # HERE",
            "HERE",
            "`unique` cannot be run inside an array or object",
        ),
        (
            "- {name: x, logicalType: array, items: {logicalType: string, logicalTypeOptions: {maxLength: 3}}} # HERE",
            "HERE",
            "`logicalTypeOptions` cannot be run inside an array or object",
        ),
        (
            "- {name: x, logicalType: array, unique: true, items: {logicalType: string}} # HERE",
            "HERE",
            "`x` is an array or object, and these cannot be compared",
        ),
    ],
)
def test_a_property_that_cannot_be_run_is_refused(
    file: Any, property_: str, at: str, words: str, the_error: TheError
) -> None:
    path = file.an_output(property_)
    errors = [f for f in lint(path) if f.severity is Level.ERROR]
    assert {e.line for e in errors} == {the_line(path, at)}
    assert any(word in e.message for e in errors for word in words.split("|")), errors
    with pytest.raises(ContractError):
        load_contract(path)


def the_line(path: Path, text: str) -> int:
    (line,) = [n for n, found in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1) if text in found]
    return line


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("apiVersion: v3.2.0", "apiVersion: v2.2.2", "apiVersion is the text 'v2.2.2'; supported: v3.0.0, v3.0.1"),
        ("apiVersion: v3.2.0", "apiVersion: 3.2", "apiVersion is the number 3.2"),
        ("kind: DataContract", "kind: Table", "kind is the text 'Table'; supported: DataContract"),
        ("version: 1.0.0", "version: 1.0", "`version`: expected text, found the number 1.0"),
        ("status: active", "statuss: active", "unknown key `statuss` in a contract"),
        ("status: active", "team: {members: [{nick: a, username: b}]}", "unknown key `nick` in a team member"),
        ("status: active", "price: {priceAmount: free}", "`priceAmount`: expected a number"),
        ("status: active", "servers: [{type: s3, location: 's3://x'}]", "an item of `servers`: `server` is missing"),
        ("status: active", "customProperties: [{property: format, value: csv}]", "has no effect here"),
        ("status: active", "customProperties: [{property: scope, value: table}]", "has no effect here"),
    ],
)
def test_a_contract_that_is_not_of_the_standard_is_refused(
    file: Any, before: str, after: str, words: str, the_error: TheError
) -> None:
    path = file.an_output(COLUMN)
    text = path.read_text(encoding="utf-8")
    at = f"\n{before}\n" if not text.startswith(before) else f"{before}\n"
    assert at in text
    path.write_text(text.replace(at, at.replace(before, after)), encoding="utf-8")
    assert words in the_error(path, after).message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kind: DataContract", "`kind` is missing"),
        ("id: orders", "`id` is missing"),
        ("version: 1.0.0", "`version` is missing"),
        ("apiVersion: v3.2.0", "apiVersion is nothing; supported: v3.0.0, v3.0.1"),
    ],
)
def test_a_contract_without_what_the_standard_requires_is_refused(file: Any, line: str, words: str) -> None:
    path = file.an_output(COLUMN)
    path.write_text(path.read_text(encoding="utf-8").replace(f"{line}\n", "", 1), encoding="utf-8")
    (error,) = [f for f in lint(path) if f.severity is Level.ERROR]
    assert words in error.message


def test_the_status_is_required_by_the_older_version_only(file: Any) -> None:
    for version, count in (("v3.1.0", 1), ("v3.2.0", 0)):
        path = file.an_output(COLUMN, version=version)
        path.write_text(path.read_text(encoding="utf-8").replace("status: active\n", ""), encoding="utf-8")
        assert len([f for f in lint(path) if f.severity is Level.ERROR]) == count


@pytest.mark.parametrize(
    ("property_", "key"),
    [
        ("- {name: x, logicalType: string, enum: [{value: a}]} # HERE", "enum"),
        ("- {name: x, logicalType: string, deprecated: true} # HERE", "deprecated"),
        ("- {name: x, logicalType: string, semanticType: column} # HERE", "semanticType"),
        ("- {name: x, logicalType: string, synonyms: []} # HERE", "synonyms"),
    ],
)
def test_what_came_with_the_newer_version_is_told_in_the_older(file: Any, property_: str, key: str) -> None:
    path = file.an_output(property_, version="v3.1.0")
    said = f"`{key}` came with ODCS v3.2.0, but this contract says v3.1.0"
    warnings = [f for f in lint(path) if f.message == said]
    assert [(f.severity, f.fix) for f in warnings] == [(Level.WARNING, "write apiVersion: v3.2.0")]
    assert "HERE" in path.read_text(encoding="utf-8").splitlines()[warnings[0].line - 1]


SECOND = "  - name: second\n    properties: [{name: y, logicalType: string}]\n"


@pytest.mark.parametrize(
    ("picked", "objects", "told"),
    [
        ("", SECOND, ("2 schema objects; a pipeline names one of them; there are", 'contract="orders#orders"')),
        ("secund", SECOND, ("no schema object called `secund`; there are", "did you mean `second`?")),
        ("third", "", ("no schema object called `third`; there are", 'contract="orders#orders"')),
        ("second", SECOND + SECOND, ("2 schema objects called `second`; there are", "a name of its own")),
    ],
)
def test_of_several_schema_objects_one_must_be_named(
    file: Any, the_error: TheError, picked: str, objects: str, told: tuple[str, str]
) -> None:
    path = file.an_output(COLUMN)
    path.write_text(path.read_text(encoding="utf-8") + objects, encoding="utf-8")
    error = the_error(path, "schema:", picked)
    assert told[0] in error.message
    assert told[1] in error.fix


@pytest.mark.parametrize(
    ("schema", "at", "words"),
    [
        ("schema: orders", "schema:", "`schema`: expected a list"),
        ("schema: [orders]", "schema:", "expected the keys of a schema object, found the text 'orders'"),
        (f"schema: [{{name: a, logicalType: array, properties: [{COLUMN[2:]}]}}]", "schema:", "supported: object"),
        (f"schema: [{{name: a, relationships: [{{}}], properties: [{COLUMN[2:]}]}}]", "schema:", "foreign keys"),
    ],
)
def test_a_schema_that_is_no_table_is_refused(file: Any, schema: str, at: str, words: str, the_error: TheError) -> None:
    path = file.write(f"apiVersion: v3.2.0\nkind: DataContract\nid: a\nversion: 1.0.0\n{schema}\n")
    assert words in the_error(path, at).message


@pytest.mark.parametrize(
    ("custom", "words"),
    [
        ("- {property: format, value: xml} # HERE", "custom property `format` is the text 'xml'; supported: json, csv"),
        ("- {property: formt, value: json} # HERE", "unknown custom property `formt`; known: format, extraFields"),
        ("- {property: format} # HERE", "`value` is missing"),
        (
            "- {property: format, value: csv}\n- {property: extraFields, value: keep} # HERE",
            "belongs to the format json",
        ),
        ("- {property: format, value: json}\n- {property: extraFields, value: drop} # HERE", "supported: keep, reject"),
        ("- {property: format, value: json}\n- {property: delimiter, value: ;} # HERE", "belongs to the format csv"),
        (
            "- {property: format, value: csv}\n- {property: delimiter, value: 9} # HERE",
            "expected text, found the number 9",
        ),
        ("- {property: delimiter, value: ;} # HERE", "belongs to the format csv, found no format"),
        ("- {property: format, value: json}\n- {property: format, value: csv} # HERE", "stands twice, first in line"),
    ],
)
def test_an_extension_that_is_not_ours_is_refused(file: Any, custom: str, words: str) -> None:
    path = file.an_input(COLUMN, custom=custom)
    errors = [f for f in lint(path) if f.severity is Level.ERROR]
    assert {e.line for e in errors} == {the_line(path, "HERE")}
    assert any(words in e.message for e in errors), errors


def test_a_misspelt_extension_names_the_right_one(file: Any, the_error: TheError) -> None:
    path = file.an_input(
        COLUMN, custom="- {property: format, value: json}\n- {property: extrafields, value: keep} # HERE"
    )
    assert the_error(path, "HERE").fix == "did you mean `extraFields`?"


def test_an_extension_of_another_vendor_is_left_alone(file: Any) -> None:
    custom = "- {property: format, value: json}\n- {property: fence, value: 1, vendor: other}"
    assert load_contract(file.an_input(COLUMN, custom=custom)).options == {}


def test_a_primary_key_of_records_is_refused(file: Any, the_error: TheError) -> None:
    path = file.an_input("- name: x\n  logicalType: string\n  primaryKey: true")
    errors = [f for f in lint(path) if f.severity is Level.ERROR]
    assert {e.line for e in errors} == {the_line(path, "primaryKey")}
    assert "primaryKey cannot be run in an input contract" in errors[0].message


def test_a_column_of_our_own_is_free_where_extra_fields_are_rejected(file: Any, the_error: TheError) -> None:
    extra = "- {name: _extra, logicalType: string} # HERE"
    assert "holds the extra fields" in the_error(file.an_input(extra), "HERE").message
    custom = "- {property: format, value: json}\n- {property: extraFields, value: reject}"
    assert load_contract(file.an_input(extra, custom=custom)).columns == ("_extra",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"", "the document is empty"),
        (b"- a", "expected a contract, found a list"),
        (b"a: [", "not YAML"),
    ],
)
def test_a_file_that_is_no_contract_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.odcs.yaml"
    path.write_bytes(content)
    with pytest.raises(ContractError, match=words) as caught:
        load_contract(path)
    assert str(caught.value).startswith(f"{path}:1: ")


@pytest.mark.parametrize("name", ["a.odcs.yaml", "a.yaml"])
def test_a_path_where_no_file_is_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContractError, match="no such file"):
        load_contract(tmp_path / name)
