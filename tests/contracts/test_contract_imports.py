"""What importers keep of numbers, rules over two columns, tests that only warn, and units of times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contracts.test_contract_formats import imported
from support.commands import type_command
from tidemill.core.contract.contract import Between, Compare, Holds, NotNull, OneOf, Severity, Unique
from tidemill.core.contract.long_number import LongNumber

LONG = "0.12345678901234567891"


def test_numbers_of_json_schema_keep_their_digits(tmp_path: Path) -> None:
    text = f"""{{"type": "object", "properties": {{
        "a": {{"type": "integer", "maximum": 9007199254740993.0}},
        "b": {{"type": "number", "minimum": {LONG}}},
        "c": {{"type": "number", "maximum": 1e23}},
        "d": {{"type": "number", "maximum": 1e999}}}}}}"""
    found, lost = imported(tmp_path, "json-schema", text)
    assert {rule.condition for rule in found.rules.values()} == {
        Between(column="a", maximum=LongNumber("9007199254740993.0")),
        # A double has fewer digits than the file, of which lint tells.
        Between(column="b", minimum=float(LONG)),
        Between(column="c", maximum=1e23),
    }
    assert f"minimum: {LONG}\n" in Path(found.contract.source).read_text()
    assert any("`d`" in line for line in lost)


def test_numbers_of_sql_keep_their_digits(tmp_path: Path) -> None:
    checks = f"a numeric(38,20) CHECK (a > -{LONG}), b bigint CHECK (b < 9007199254740993), c real CHECK (c < 1e23)"
    found, lost = imported(tmp_path, "sql", f"CREATE TABLE t ({checks})", "--dialect", "postgres")
    assert {rule.condition for rule in found.rules.values()} == {
        Between(column="a", minimum=LongNumber(f"-{LONG}"), exclusive_minimum=True),
        Between(column="b", maximum=9007199254740993, exclusive_maximum=True),
        Between(column="c", maximum=1e23, exclusive_maximum=True),
    }
    assert lost == []


def test_checks_of_two_columns_are_rules(tmp_path: Path) -> None:
    found, lost = imported(
        tmp_path,
        "sql",
        """CREATE TABLE t (a int, "B" int CHECK (a <= "B"), c text, x double precision,
        CONSTRAINT ordered CHECK (A < "B"), CHECK (a <> "B" AND a > 1 AND "B" > A), CHECK (a < c), CHECK (a < nope),
        CHECK (a < "B" OR a < 3))""",
        "--dialect",
        "postgres",
    )
    assert {rule.condition for rule in found.rules.values()} == {
        Compare(left="a", operator="<=", right="B"),
        Compare(left="a", operator="<", right="B"),
        Compare(left="B", operator=">", right="a"),
        Holds(columns=("a", "B"), predicate="`a` <> `B`"),
        Between(column="a", minimum=1, exclusive_minimum=True),
    }
    assert "ordered" in found.rules
    for text in ("`a` < `c`", "`a` < `nope`", "CHECK (a < `B` OR a < 3)"):
        assert any(text in line for line in lost), (text, lost)


@pytest.mark.parametrize("dialect", ["postgres", "redshift"])
def test_keys_and_columns_that_count_up_are_never_null(tmp_path: Path, dialect: str) -> None:
    columns = "a SERIAL, b BIGSERIAL, c SMALLSERIAL, d int, E int, f int, PRIMARY KEY (d, e)"
    found, _ = imported(tmp_path, "sql", f"CREATE TABLE t ({columns})", "--dialect", dialect)
    assert {f.name for f in found.contract.fields if f.required} == {"a", "b", "c", "d", "E"}
    assert found.contract.primary_key == ("d", "E")
    identity = "CREATE TABLE t (a int GENERATED ALWAYS AS IDENTITY, b int)"
    found, lost = imported(tmp_path, "sql", identity, "--dialect", "postgres")
    assert ([f.required for f in found.contract.fields], len(lost)) == ([True, False], 1)


def test_tests_of_dbt_that_warn_are_rules_that_warn(tmp_path: Path) -> None:
    found, lost = imported(
        tmp_path,
        "dbt",
        """
models:
  - name: orders
    columns:
      - name: a
        data_type: int
        data_tests:
          - not_null: {config: {severity: warn}}
          - unique: {severity: WARN}
          - accepted_values: {arguments: {values: [1, 2]}, config: {severity: warn}}
      - name: b
        data_type: int
        data_tests:
          - not_null: {config: {severity: warn, where: "a > 1"}}
          - accepted_values: {values: [1, 2], config: {severity: error, error_if: ">10"}}
""",
    )
    assert {(rule.condition, rule.severity) for rule in found.rules.values()} == {
        (NotNull(column="a"), Severity.WARNING),
        (Unique(columns=("a",)), Severity.WARNING),
        (OneOf(column="a", values=(1, 2)), Severity.WARNING),
    }
    assert not any(field.required for field in found.contract.fields)
    assert len([line for line in lost if "of `b` is left out" in line]) == 2


def a_record(**units: str) -> dict[str, Any]:
    fields = [{"name": name, "type": {"type": "long", "logicalType": unit}} for name, unit in units.items()]
    return {"type": "record", "name": "It", "fields": fields}


@pytest.mark.parametrize(
    ("units", "option"),
    [
        ({"a": "timestamp-millis"}, {"timestamp": "epoch_ms"}),
        ({"a": "timestamp-micros", "b": "timestamp-micros"}, {"timestamp": "epoch_us"}),
        ({"a": "timestamp-millis", "b": "timestamp-micros"}, {}),
    ],
)
def test_times_of_avro_keep_their_unit(tmp_path: Path, units: dict[str, str], option: dict[str, str]) -> None:
    found, lost = imported(tmp_path, "avro", a_record(**units))
    assert dict(found.contract.options) == option
    said = "the units of times are left out, for a contract has one for all fields: timestamp-millis in `a`"
    assert [said in line for line in lost] == ([] if option else [True])


def test_aliases_are_refused_and_stars_in_texts_are_not(tmp_path: Path) -> None:
    models = (
        "models:\n  - name: it\n    description: uses *stars* &ampersands\n    columns: [{name: a, data_type: int}]\n"
    )
    found, lost = imported(tmp_path, "dbt", models)
    assert (found.contract.columns, lost) == (("a",), [])
    bomb = "a: &a [x]\nb: &b [*a, *a]\n" + models
    (tmp_path / "in.yml").write_text(bomb)
    said = type_command(None, "contract", "import", "dbt", tmp_path / "in.yml")
    assert (said.code, "has aliases" in said.err) == (5, True)
