"""Contracts from and to JSON Schema, Avro, SQL and dbt: nothing is lost in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.commands import Said, type_command
from tidemill.contracts.changes.described import Described, described
from tidemill.contracts.conditions import Condition
from tidemill.contracts.lint import lint
from tidemill.core.contract.contract import Between, Compare, OneOf, Severity

FORMATS = ("json-schema", "avro", "sql", "dbt")
ENDINGS = {"json-schema": "json", "avro": "avsc", "sql": "sql", "dbt": "yml"}
HEAD = "apiVersion: v3.1.0\nkind: DataContract\nid: it\nversion: 1.0.0\nstatus: active\nschema:\n  - name: it\n"
TABLE = f"""{HEAD}    logicalType: object
    description: "What it's about: \\"all\\" of it."
    properties:
      - {{name: id, logicalType: integer, required: true, primaryKey: true, description: "it's one"}}
      - {{name: small, logicalType: integer, physicalType: int, required: true}}
      - {{name: x, logicalType: number}}
      - {{name: ok, logicalType: boolean}}
      - {{name: day, logicalType: date}}
      - {{name: ts, logicalType: timestamp}}
      - {{name: raw, logicalType: string, physicalType: binary}}
      - {{name: tags, logicalType: array, items: {{logicalType: string}}}}
      - name: o
        logicalType: object
        properties: [{{name: a, logicalType: integer}}, {{name: b, logicalType: date}}]
"""
RULES = f"""{HEAD}    logicalType: object
    description: Rules.
    customProperties: [{{property: format, value: json}}, {{property: extraFields, value: reject}}]
    properties:
      - name: n
        logicalType: integer
        required: true
        logicalTypeOptions: {{minimum: 1, exclusiveMaximum: 9, multipleOf: 2}}
      - {{name: x, logicalType: number, logicalTypeOptions: {{exclusiveMinimum: 0.5, maximum: 9}}}}
      - {{name: s, logicalType: string, logicalTypeOptions: {{pattern: "a|b+", minLength: 1, maxLength: 3}}}}
      - name: l
        logicalType: array
        items: {{logicalType: integer}}
        logicalTypeOptions: {{minItems: 1, maxItems: 2, uniqueItems: true}}
      - name: k
        logicalType: string
        quality: [{{metric: invalidValues, arguments: {{validValues: ["a", "b c", "no"]}}, mustBe: 0}}]
"""


def one(path: Path, text: str = "") -> Described:
    if text:
        path.write_text(text, encoding="utf-8")
    found, errors = described(path)
    assert errors == []
    (only,) = found.values()
    return only


def export(form: str, contract: Path) -> Said:
    said = type_command(None, "contract", "export", form, contract)
    assert said.code == 0, said.err
    return said


def bring(form: str, file: Path, *words: object) -> Said:
    said = type_command(None, "contract", "import", form, file, *words)
    assert said.code == 0, said.err
    path = file.parent / "back" / "it.odcs.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(said.out, encoding="utf-8")
    assert [f for f in lint(path) if f.severity == "error"] == []
    return said


def round_trip(form: str, folder: Path, text: str) -> tuple[Described, Described, Said]:
    """A contract before and after it was exported and imported, and what the export said."""
    before = one(folder / "it.odcs.yaml", text)
    said = export(form, folder / "it.odcs.yaml")
    (folder / f"it.{ENDINGS[form]}").write_text(said.out, encoding="utf-8")
    assert bring(form, folder / f"it.{ENDINGS[form]}", "--name", "it").err == ""
    return before, one(folder / "back" / "it.odcs.yaml"), said


def conditions(contract: Described) -> set[Condition]:
    return {rule.condition for rule in contract.rules.values()}


@pytest.mark.parametrize("form", FORMATS)
def test_fields_come_back_as_they_went(tmp_path: Path, form: str) -> None:
    before, after, said = round_trip(form, tmp_path, TABLE)
    assert after.contract.fields == before.contract.fields
    assert after.contract.description == before.contract.description
    has_keys = form in ("sql", "dbt")
    assert after.contract.primary_key == (("id",) if has_keys else ())
    assert ("primaryKey" in said.err) == (not has_keys)


def test_every_rule_of_records_comes_back_from_json_schema(tmp_path: Path) -> None:
    before, after, said = round_trip("json-schema", tmp_path, RULES)
    assert said.err == ""
    assert conditions(after) == conditions(before)
    assert after.contract.extra_fields == "reject"
    schema = json.loads((tmp_path / "it.json").read_text())
    Draft202012Validator.check_schema(schema)
    for record, good in (
        ({"n": 2}, True),
        ({"n": 2, "s": None, "k": None, "l": [1, None]}, True),
        ({"n": 2, "k": "no", "s": "bb"}, True),
        ({"n": None}, False),
        ({"n": 9}, False),
        ({"n": 2, "s": "ab"}, False),
        ({"n": 2, "k": "c"}, False),
        ({"n": 2, "more": 1}, False),
    ):
        assert Draft202012Validator(schema).is_valid(record) == good
        tried = type_command(None, "contract", "test", tmp_path / "it.odcs.yaml", "-", given=json.dumps(record))
        assert (tried.code == 0) == good


@pytest.mark.parametrize("form", ["avro", "sql", "dbt"])
def test_rules_that_a_format_cannot_say_are_named_with_their_lines(tmp_path: Path, form: str) -> None:
    before, after, said = round_trip(form, tmp_path, RULES.replace('"b c"', "bc").replace("minLength: 1, ", ""))
    kept = conditions(after)
    assert kept <= conditions(before)
    named = {line.split("rule `")[1].split("`")[0]: line for line in said.err.splitlines() if "rule `" in line}
    assert named.keys() == {name for name, rule in before.rules.items() if rule.condition not in kept}
    assert ("n.minimum" in named) is (form != "sql")
    assert f"it.odcs.yaml:{before.rules['n.multipleOf'].line}: " in named["n.multipleOf"]
    assert "k.invalidValues" not in named


def test_rules_that_only_warn_or_are_of_users_are_named(tmp_path: Path) -> None:
    rules = """    quality:
      - {type: custom, engine: tidemill, name: own, implementation: "n > 0"}
"""
    soft = RULES.replace("mustBe: 0}", "mustBe: 0, severity: warning}")
    one(tmp_path / "it.odcs.yaml", soft + rules)
    said = export("json-schema", tmp_path / "it.odcs.yaml")
    assert "rule `own` is left out: JSON Schema cannot say it" in said.err
    assert "rule `k.invalidValues` is left out: it only warns" in said.err
    assert "enum" not in said.out


def imported(folder: Path, form: str, source: Any, *words: object) -> tuple[Described, list[str]]:
    file = folder / f"in.{ENDINGS[form]}"
    file.write_text(source if isinstance(source, str) else json.dumps(source), encoding="utf-8")
    said = bring(form, file, *words)
    return one(folder / "back" / "it.odcs.yaml"), said.err.splitlines()


def test_json_schema_of_others_is_read_or_named(tmp_path: Path) -> None:
    found, lost = imported(
        tmp_path,
        "json-schema",
        {
            "type": "object",
            "required": ["id", "maybe"],
            "properties": {
                "id": {"$ref": "#/$defs/id"},
                "maybe": {"anyOf": [{"type": "null"}, {"type": "string", "format": "email"}]},
                "any": {},
                "list": {"type": "array"},
                "both": {"type": ["string", "integer"]},
                "part": {"type": "string", "pattern": "b"},
                "edge": {"type": "string", "pattern": "^a|b$"},
                "ahead": {"type": "string", "pattern": "^(?=a)a$"},
                "self": {"$ref": "#"},
                "lost": {"$ref": "other.json"},
                "kind": {"enum": ["a", "b"]},
                "o": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "minProperties": 1},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            "dependentRequired": {"id": ["maybe"]},
            "$defs": {"id": {"type": "integer", "minimum": 1}},
        },
    )
    fields = {f.name: f for f in found.contract.fields}
    assert set(fields) == {"id", "maybe", "part", "edge", "ahead", "kind", "o"}
    assert {name for name, f in fields.items() if f.required} == {"id"}
    assert {"id.minimum", "maybe.format", "part.pattern", "kind.invalidValues"} == found.rules.keys()
    for text in (
        *(
            "`list[]` is left out: it has no type",
            "`maybe`: it must be there",
            "`any` is left out: it has no type",
            "`both` is left out: its type is",
        ),
        *("`pattern` of `edge`", "`pattern` of `ahead`", "other.json leads nowhere", "`maxLength` of `o.a`"),
        *("`minProperties` of `o`", "`map` is left out", "`dependentRequired` of the schema", "it contains itself"),
    ):
        assert any(text in line for line in lost), text


def test_avro_of_others_is_read_or_named(tmp_path: Path) -> None:
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "float"}]}
    found, lost = imported(
        tmp_path,
        "avro",
        {
            "type": "record",
            "name": "It",
            "namespace": "a.b",
            "fields": [
                {"name": "p", "type": point},
                {"name": "q", "type": ["null", "Point"], "default": None},
                {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
                {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
                {"name": "f", "type": {"type": "fixed", "name": "F", "size": 4}, "default": "0000"},
                {"name": "m", "type": {"type": "map", "values": "int"}},
                {"name": "u", "type": ["int", "string"]},
                {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
                {"name": "self", "type": ["null", "It"]},
            ],
        },
    )
    assert set(found.contract.columns) == {"p", "q", "ts", "id", "d", "f"}
    assert {f.name for f in found.contract.fields if f.required} == {"p", "ts", "id", "d", "f"}
    for text in ("`size` of `f`", "`default` of `f`", "for map", "of several types", "for time-millis", "itself"):
        assert any(text in line for line in lost), text


def test_sql_of_others_is_read_or_named(tmp_path: Path) -> None:
    statement = """
CREATE TABLE shop.other (a int);
CREATE TABLE IF NOT EXISTS shop.orders (
  b varchar(64) UNIQUE,
  a bigint NOT NULL,
  c numeric(10, 2) CHECK (c > 0) CHECK (c <> 7),
  d jsonb,
  e timestamp DEFAULT now(),
  f uuid REFERENCES other (a),
  PRIMARY KEY (a, b)
);
"""
    file = tmp_path / "in.sql"
    file.write_text(statement)
    said = type_command(None, "contract", "import", "sql", f"{file}#orders", "--dialect", "postgres")
    path = tmp_path / "orders.odcs.yaml"
    found, lost = one(path, said.out), said.err.splitlines()
    assert found.contract.primary_key == ("a", "b")
    assert {f.name for f in found.contract.fields} == {"a", "b", "c", "e", "f"}
    assert {"b.maxLength", "b.unique", "f.format", "c.exclusiveMinimum"} <= found.rules.keys()
    for text in ("CHECK", "for JSONB", "DEFAULT", "REFERENCES"):
        assert any(text in line for line in lost), (text, lost)
    several = type_command(None, "contract", "import", "sql", file)
    assert (several.code, "there are other, orders" in several.err) == (5, True)


CHECKS = """
CREATE TABLE t (
  id bigint CHECK (id > 0 AND 9 >= id),
  c numeric(10, 2) CHECK (c >= -1.5),
  s text CHECK (s IN ('a', 'b''c')),
  d double precision,
  z int CHECK (z <> 3) CHECK (z > 1) CHECK (z > 2),
  w text CHECK (w > 5),
  CONSTRAINT x CHECK (d BETWEEN 1 AND 2),
  CHECK (id < z),
  CHECK (nope > 3)
);
"""


def test_checks_of_one_column_are_taken_and_written(tmp_path: Path) -> None:
    (tmp_path / "in.sql").write_text(CHECKS)
    said = type_command(None, "contract", "import", "sql", tmp_path / "in.sql", "--dialect", "postgres")
    found = one(tmp_path / "t.odcs.yaml", said.out)
    conditions = {rule.condition for rule in found.rules.values()}
    assert conditions == {
        Between(column="id", minimum=0, exclusive_minimum=True),
        Between(column="id", maximum=9),
        Between(column="c", minimum=-1.5),
        OneOf(column="s", values=("a", "b'c")),
        Between(column="d", minimum=1),
        Between(column="d", maximum=2),
        Between(column="z", minimum=1, exclusive_minimum=True),
        Compare(left="id", operator="<", right="z"),
    }
    left = ("z <> 3", "z > 2", "w > 5", "nope > 3")
    assert all(any(f"CHECK ({text}) of " in line for line in said.err.splitlines()) for text in left)
    assert len(said.err.splitlines()) == len(left)
    out = type_command(None, "contract", "export", "sql", tmp_path / "t.odcs.yaml")
    assert out.err == ""
    (tmp_path / "out.sql").write_text(out.out)
    again = type_command(None, "contract", "import", "sql", tmp_path / "out.sql")
    assert again.err == ""
    assert {rule.condition for rule in one(tmp_path / "t.odcs.yaml", again.out).rules.values()} == conditions


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (["It"], None),
        ([], "is a list of 1 schemas; records among them: none"),
        (["A", "B"], "is a list of 3 schemas; records among them: A, B"),
    ],
)
def test_a_list_of_avro_is_one_record_or_refused(tmp_path: Path, records: list[str], said: str | None) -> None:
    fields = [{"name": "x", "type": "long"}]
    union = ["null", *({"type": "record", "name": name, "fields": fields} for name in records)]
    (tmp_path / "in.avsc").write_text(json.dumps(union))
    found = type_command(None, "contract", "import", "avro", tmp_path / "in.avsc")
    assert (found.code == 0) is (said is None)
    assert said is None or said in found.err


SCRIPT = """
DROP TABLE IF EXISTS s1.a;
CREATE TABLE s1.a (id bigint, x varchar(9), z int);
CREATE TABLE s2.a (other bigint);
ALTER TABLE s1.a ADD CONSTRAINT pk PRIMARY KEY (id);
ALTER TABLE s1.a ALTER COLUMN x SET NOT NULL;
ALTER TABLE s1.a ADD COLUMN y int NOT NULL;
ALTER TABLE s1.a DROP COLUMN z;
ALTER TABLE s1.a RENAME TO c;
COMMENT ON TABLE s1.a IS 'what it is';
COMMENT ON COLUMN s1.a.x IS 'an x';
CREATE UNIQUE INDEX i ON s1.a (y);
CREATE VIEW v AS SELECT 1;
"""


def test_statements_after_the_table_are_applied_or_named(tmp_path: Path) -> None:
    file = tmp_path / "in.sql"
    file.write_text(SCRIPT)
    both = type_command(None, "contract", "import", "sql", f"{file}#a", "--dialect", "postgres")
    assert (both.code, "there are s1.a, s2.a" in both.err) == (5, True)
    said = type_command(None, "contract", "import", "sql", f"{file}#s1.a", "--dialect", "postgres")
    found, lost = one(tmp_path / "a.odcs.yaml", said.out), said.err.splitlines()
    assert (found.contract.primary_key, found.contract.description) == (("id",), "what it is")
    fields = {f.name: (f.required, f.description) for f in found.contract.fields}
    assert fields == {"id": (True, ""), "x": (True, "an x"), "y": (True, "")}
    assert {"x.maxLength", "y.unique"} <= found.rules.keys()
    assert [any(text in line for line in lost) for text in ("VIEW", "RENAME")] == [True, True]
    file.write_text(SCRIPT + "CREATE TABLE s1.a (q int);")
    again = type_command(None, "contract", "import", "sql", f"{file}#s1.a", "--dialect", "postgres")
    assert (again.code, "created 2 times" in again.err) == (5, True)


def test_models_of_dbt_of_others_are_read_or_named(tmp_path: Path) -> None:
    found, lost = imported(
        tmp_path,
        "dbt",
        """
version: 2
models:
  - name: orders
    tests: [{dbt_utils.unique_combination_of_columns: {combination_of_columns: [id, kind]}}]
    columns:
      - {name: id, data_type: int, data_tests: [unique, not_null, {relationships: {to: ref('x'), field: id}}]}
      - {name: kind, data_type: string, tests: [{accepted_values: {values: [a, b]}}]}
      - {name: soft, data_type: string, tests: [{not_null: {config: {severity: warn}}}]}
      - {name: untyped}
      - {name: odd, data_type: "what is (this"}
""",
    )
    assert found.contract.columns == ("id", "kind", "soft")
    assert {f.name for f in found.contract.fields if f.required} == {"id"}
    assert found.rules.keys() == {"id.unique", "kind.invalidValues", "soft.nullValues"}
    assert found.rules["soft.nullValues"].severity is Severity.WARNING
    for text in ("unique_combination", "relationships of `id`", "`untyped`", "`odd`"):
        assert any(text in line for line in lost), text


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"type": 5}', "\xff: [", "[" * 3000, "models: 5", "select 1"])
def test_what_is_no_such_file_is_refused_in_one_message(tmp_path: Path, form: str, text: str) -> None:
    file = tmp_path / "in"
    file.write_text(text, encoding="latin-1")
    said = type_command(None, "contract", "import", form, file)
    assert (said.code, said.out) == (5, "")
    assert said.err.startswith(f"error: {file}")
    assert type_command(None, "contract", "import", form, tmp_path / "nowhere").code == 5


def test_types_that_contain_each_other_without_end_are_refused(tmp_path: Path) -> None:
    layers = {
        f"l{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/l{n + 1}"} for k in "abc"}} for n in range(15)
    }
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": layers}
    (tmp_path / "in.json").write_text(json.dumps(schema))
    said = type_command(None, "contract", "import", "json-schema", tmp_path / "in.json")
    assert (said.code, "more than 5,000 fields" in said.err) == (5, True)
