"""What promises nothing about values is read over, and `lint --verbose` lists it; nothing else gets through."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from support.commands import type_command
from support.odcs_constructs import constructs
from support.odcs_constructs import schema as odcs
from support.odcs_outcomes import compiled
from tidemill.contracts.findings import Level
from tidemill.contracts.lint import lint
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import Between
from tidemill.core.contract.schema import Array, Decimal, Scalar
from tidemill.core.errors import ContractError

FOREIGN = [
    ("{name: x, logicalType: string, physicalType: varchar(9)}", "`varchar(9)` is the source's own", Scalar.STRING),
    ("{name: x, logicalType: string, physicalType: 'ENUM(a, b)'}", "values are read as string", Scalar.STRING),
    ("{name: x, physicalType: varchar(9)}", "`varchar(9)` is read as string", Scalar.STRING),
    ("{name: x, physicalType: TEXT}", "`TEXT` is read as string", Scalar.STRING),
    ("{name: x, physicalType: bigint}", "`bigint` is read as integer", Scalar.LONG),
    ("{name: x, physicalType: int}", "`int` is read as integer", Scalar.INTEGER),
    ("{name: x, physicalType: 'numeric(9,2)'}", "is read as number", Decimal(9, 2)),
    ("{name: x, physicalType: timestamp_ntz}", "is read as timestamp", Scalar.TIMESTAMP),
    ("{name: x, logicalType: integer, physicalType: smallint}", "values are read as bigint", Scalar.LONG),
    ("{name: x, logicalType: number, physicalType: float}", "values are read as double", Scalar.DOUBLE),
    ("{name: x, logicalType: timestamp, physicalType: timestamp_tz}", "values are read as", Scalar.TIMESTAMP),
    ("{name: x, logicalType: array, physicalType: list, items: {logicalType: string}}", "`list` is", None),
    ("{name: x, logicalType: string, physicalName: col_y}", "a column is called by its name", Scalar.STRING),
    ("{name: x, logicalType: string, partitioned: true}", "`partitioned` of property `x` is not used", Scalar.STRING),
    ("{name: x, logicalType: string, partitionKeyPosition: 1}", "`partitionKeyPosition` of", Scalar.STRING),
]


@pytest.mark.parametrize(("property_", "words", "read"), FOREIGN)
def test_how_the_source_keeps_its_data_is_information(file: Any, property_: str, words: str, read: Any) -> None:
    path = file.an_input(f"- {property_} # HERE")
    told = [f for f in lint(path) if f.severity is Level.INFORMATION]
    assert len(told) == 1
    assert words in told[0].message
    assert "HERE" in path.read_text(encoding="utf-8").splitlines()[told[0].line - 1]
    [column] = load_contract(path).fields
    assert column.type == (read or Array(Scalar.STRING))
    brief = type_command(None, "contract", "lint", path)
    full = type_command(None, "contract", "lint", path, "--verbose")
    assert (brief.code, full.code) == (0, 0)
    assert words not in " ".join(brief.out.split())
    assert words in " ".join(full.out.split())


UNUSED = [
    ("quality: [{metric: nullValues, mustBe: 0, schedule: '0 20 * * *'}]", "`schedule` of a quality rule is not used"),
    ("quality: [{metric: nullValues, mustBe: 0, method: reconciliation}]", "`method` of a quality rule is not used"),
    ("quality: [{metric: nullValues, mustBe: 0, severity: info}]", "severity `info` is read as warning"),
    ("quality: [{rule: old, metric: nullValues, mustBe: 0}]", "ODCS replaced it by metric"),
    ("quality: [{type: text, description: it was verified}]", "is for people, and not checked"),
    ("logicalTypeOptions: {format: password}", "password says how to show values"),
]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("", "`schema` is missing"),
        ("schema: []", "`schema` is empty"),
        ("schema: [{name: a, properties: []}]", "without properties has no columns"),
        ("schema: [{name: a}]", "without properties has no columns"),
        *(
            (f"schema: [{{name: a, description: d, properties: [{{name: x, description: d, {kind}}}]}}]", words)
            for kind, words in (
                ("logicalType: array", "`x` is an array without items"),
                ("logicalType: object", "`x` is an object without properties"),
                ("logicalType: object, properties: []", "`x` is an object without properties"),
                ("logicalType: array, items: {logicalType: object}", "an object without properties"),
            )
        ),
    ],
)
def test_a_contract_without_columns_is_read_and_used_by_nobody(file: Any, schema: str, words: str) -> None:
    path = file.write(f"apiVersion: v3.1.0\nkind: DataContract\nid: a\nversion: 1.0.0\nstatus: active\n{schema}\n")
    assert [(f.severity, words in f.message) for f in lint(path)] == [(Level.WARNING, True)]
    with pytest.raises(ContractError, match="no pipeline can use it"):
        load_contract(path)
    said = type_command(None, "contract", "test", path, "-")
    assert (said.code, "no topic or table with columns" in said.err) == (5, True)


@pytest.mark.parametrize(("key", "words"), UNUSED)
def test_what_others_do_with_a_rule_is_information(file: Any, key: str, words: str) -> None:
    path = file.an_output(f"- {{name: x, logicalType: string, {key}}}")
    assert [words in f.message for f in lint(path) if f.severity is Level.INFORMATION] == [True]
    load_contract(path)


@pytest.mark.parametrize(
    ("width", "low", "high"), [("u8", 0, 255), ("i16", -32768, 32767), ("i32", -(2**31), 2**31 - 1)]
)
def test_a_narrow_integer_has_the_bounds_of_its_width(file: Any, width: str, low: int, high: int) -> None:
    path = file.an_output(f"- {{name: x, logicalType: integer, logicalTypeOptions: {{format: {width}}}}}")
    assert [r.check for r in load_contract(path).table_rules] == [Between(column="x", minimum=low, maximum=high)]


@pytest.mark.parametrize("spelling", ["decimal(10,2)", "NUMERIC(10, 2)", "Number(10,2)"])
def test_exact_numbers_have_the_names_of_all_databases(file: Any, spelling: str) -> None:
    path = file.an_input(f"- {{name: x, logicalType: number, physicalType: '{spelling}'}}")
    assert load_contract(path).fields[0].type == Decimal(10, 2)
    assert {f.severity for f in lint(path)} <= {Level.WARNING}


@pytest.mark.parametrize("spelling", ["decimal(10;2)", "decimal(39,2)", "numeric(2,3)", "decimal(10,2"])
def test_digits_that_cannot_be_kept_are_no_information(file: Any, the_error: Any, spelling: str) -> None:
    path = file.an_input(f"- {{name: x, logicalType: number, physicalType: '{spelling}'}} # HERE")
    assert f"physicalType `{spelling}` cannot be run" in the_error(path, "HERE").message


def test_a_wrong_type_does_not_hide_the_other_faults_of_its_field(file: Any) -> None:
    path = file.an_input(
        """
        - name: x
          logicalType: integer
          physicalType: int unsigned
          logicalTypeOptions: {minimun: 1}
        """
    )
    [fault] = [f for f in lint(path) if f.severity is Level.ERROR]
    assert fault.message.startswith("`x`.minimun: unknown option; supported: ")


@pytest.mark.parametrize("version", ["v3.0.0", "v3.0.1", "v3.0.2", "v3.1.0", "v3.2.0"])
def test_every_version_means_the_same(file: Any, version: str) -> None:
    newest = load_contract(file.an_input("- {name: x, logicalType: integer, logicalTypeOptions: {minimum: 1}}"))
    path = file.an_input("- {name: x, logicalType: integer, logicalTypeOptions: {minimum: 1}}", version=version)
    assert load_contract(path).fingerprint == newest.fingerprint
    assert not [f for f in lint(path) if f.severity is Level.ERROR]


def test_custom_properties_of_others_are_information_whoever_they_are_of(file: Any) -> None:
    custom = (
        "- {property: format, value: json}\n- {property: costCentre, value: 7}\n- {property: x, value: 1, vendor: me}"
    )
    path = file.an_input("- {name: x, logicalType: string}", custom=custom)
    told = [f.message for f in lint(path) if f.severity is Level.INFORMATION]
    assert told == ["custom property `costCentre` is not Tidemill's"]
    load_contract(path)


def test_custom_properties_of_contract_and_columns_are_listed(file: Any) -> None:
    column = "- name: x\n  logicalType: string\n  customProperties: [{property: owner, value: a}]"
    path = file.an_output(column, top="customProperties: [{property: foo, value: 1}]")
    told = [f.message for f in lint(path) if f.severity is Level.INFORMATION]
    assert told == ["custom property `foo` is not Tidemill's", "custom property `owner` is not Tidemill's"]


@pytest.mark.parametrize(
    ("custom", "said"),
    [
        ("{property: scope, value: table}", "`scope` has no effect here"),
        ("{property: null, value: x}", "needs a name"),
        ("{property: 'null', value: ','}", "`null` is the delimiter"),
        ("{property: delimiter, value: '-'}\n- {property: 'null', value: '-'}", "`null` is the delimiter"),
    ],
)
def test_custom_property_that_means_nothing_is_an_error_with_its_fix(file: Any, custom: str, said: str) -> None:
    path = file.an_input("- {name: x, logicalType: string}", custom=f"- {{property: format, value: csv}}\n- {custom}")
    [error] = [f for f in lint(path) if f.severity is Level.ERROR and said in f.message]
    assert error.fix


ODD = (None, True, 0, -1, 3.5, "", "a b", [], {}, ["x"], {"x": 1}, "object", "integer", "v3.1.0", "2 days")
KEYS = ("foo", "unique", "enum", "quality", "items", "map", "mustBe", "metric", "vendor", "id", "context", "team")


def mutants(document: Any, seed: int) -> Iterator[Any]:
    """Copies of the document in each of which one or two things are changed, added, renamed or removed."""
    chance = random.Random(seed)
    while True:
        mutant = copy.deepcopy(document)
        for _ in range(chance.choice((1, 1, 2))):
            owner, key = chance.choice(list(_places(mutant)))
            match chance.randrange(4):
                case 0:
                    del owner[key]
                case 1:
                    owner[key] = chance.choice(ODD)
                case 2 if isinstance(owner, dict):
                    owner[chance.choice(KEYS)] = chance.choice(ODD)
                case _ if isinstance(owner, dict):
                    owner[f"{key}s"] = owner.pop(key)
        yield mutant


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


@pytest.mark.parametrize(("seed", "count"), [(1, 60), pytest.param(2, 1000, marks=pytest.mark.long)])
def test_nothing_is_accepted_that_the_official_schema_refuses(
    our_contracts: Path, tmp_path: Path, seed: int, count: int
) -> None:
    schema = json.loads((resources.files("open_data_contract_standard") / "schema.json").read_text(encoding="utf-8"))
    official = jsonschema.Draft201909Validator(schema)
    documents = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(our_contracts.glob("*.odcs.yaml"))]
    made = [mutants(document, seed) for document in documents]
    refused = 0
    for number in range(count):
        mutant = next(made[number % len(made)])
        path = tmp_path / "mutant.odcs.yaml"
        path.write_text(yaml.safe_dump(mutant, sort_keys=False), encoding="utf-8")
        faults = lint(path)
        assert not any("unexpected" in f.message for f in faults), mutant
        if not official.is_valid(mutant):
            refused += 1
            assert any(f.severity is Level.ERROR for f in faults), mutant
    assert refused > count // 2


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_no_construct_is_accepted_in_a_way_that_the_official_schema_refuses(count: int) -> None:
    official = jsonschema.Draft201909Validator(odcs())
    documents = [each.document for is_input in (True, False) for each in constructs(is_input=is_input)]
    chance = random.Random(count)
    refused = 0
    for _ in range(count):
        mutant = next(mutants(chance.choice(documents), chance.randrange(10**9)))
        if not official.is_valid(mutant):
            refused += 1
            found = compiled(mutant)[1]
            assert any(f.severity is Level.ERROR for f in found), mutant
            assert not any("unexpected" in f.message for f in found), mutant
    assert refused > count // 4
