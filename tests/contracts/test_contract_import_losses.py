"""Importers keep what a contract can say, and name what they leave out; so do exports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.test_contract_formats import RULES, export, imported, one
from support.commands import type_command
from tidemill.core.contract.contract import Between, Matches, OneOf, Severity
from tidemill.core.contract.row_checks import Bounded


def a_text(pattern: str) -> str:
    return json.dumps({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})


def test_patterns_of_unicode_are_taken_and_given_back(tmp_path: Path) -> None:
    found, lost = imported(tmp_path, "json-schema", a_text("^\\p{L}+$"))
    assert [rule.condition for rule in found.rules.values()] == [Matches(column="a", pattern="\\p{L}+")]
    assert lost == []
    exported = type_command(None, "contract", "export", "json-schema", found.contract.source).out
    again, lost = imported(tmp_path, "json-schema", exported)
    assert [rule.condition for rule in again.rules.values()] == [Matches(column="a", pattern="\\p{L}+")]


@pytest.mark.parametrize("pattern", ["^\\p{Script=Greek}+$", "^(?<year>\\d+)$", "^(?=a)b$", "^($"])
def test_a_pattern_that_no_contract_can_have_is_left_out(tmp_path: Path, pattern: str) -> None:
    found, lost = imported(tmp_path, "json-schema", a_text(pattern))
    assert (found.contract.columns, len(found.rules)) == (("a",), 0)
    assert any("pattern" in line and "`a`" in line for line in lost)


def test_both_lists_of_accepted_values_are_kept(tmp_path: Path) -> None:
    tests = (
        "[{accepted_values: {values: [a, b, c]}},"
        " {accepted_values: {arguments: {values: [a, b]}, config: {severity: warn}}}]"
    )
    models = f"models: [{{name: it, columns: [{{name: k, data_type: string, data_tests: {tests}}}]}}]\n"
    found, lost = imported(tmp_path, "dbt", models)
    assert {(rule.condition, rule.severity) for rule in found.rules.values()} == {
        (OneOf(column="k", values=("a", "b", "c")), Severity.ERROR),
        (OneOf(column="k", values=("a", "b")), Severity.WARNING),
    }
    assert lost == []


@pytest.mark.parametrize("bad", ["`a b` int", "g interval"])
def test_a_key_of_which_a_column_is_missing_is_left_out_alone(tmp_path: Path, bad: str) -> None:
    name = bad.rpartition(" ")[0]
    found, lost = imported(tmp_path, "sql", f"CREATE TABLE t ({bad}, c int, d int, PRIMARY KEY ({name}, c))")
    assert found.contract.columns == ("c", "d")
    assert found.contract.primary_key == ()
    assert [field.required for field in found.contract.fields] == [True, False]
    assert any(f"the primary key ({name.strip('`')}, c) is left out" in line for line in lost)


def test_short_integers_keep_their_range(tmp_path: Path) -> None:
    columns = "a SMALLINT, b TINYINT CHECK (b > 0), c SMALLINT CHECK (c >= -99999 AND c <= 7), d INT"
    found, lost = imported(tmp_path, "sql", f"CREATE TABLE t ({columns})")
    assert {rule.condition for rule in found.rules.values()} == {
        Between(column="a", minimum=-32768, maximum=None),
        Between(column="a", minimum=None, maximum=32767),
        Between(column="b", minimum=0, exclusive_minimum=True),
        Between(column="b", maximum=127),
        Between(column="c", minimum=-32768),
        Between(column="c", maximum=7),
    }
    assert lost == []


@pytest.mark.parametrize("day", ["DATE '2020-01-01'", "'2020-01-01'", "CAST('2020-01-01' AS DATE)"])
def test_bounds_of_days_are_bounds(tmp_path: Path, day: str) -> None:
    found, lost = imported(tmp_path, "sql", f"CREATE TABLE t (d DATE CHECK (d >= {day}), s TEXT CHECK (s > 'a'))")
    assert [rule.condition for rule in found.rules.values()] == [Bounded(column="d", operator=">=", bound="2020-01-01")]
    assert len(lost) == 1


@pytest.mark.parametrize("form", ["json-schema", "avro", "sql", "dbt"])
def test_service_levels_are_named_with_their_lines_by_exports(tmp_path: Path, form: str) -> None:
    path = tmp_path / "it.odcs.yaml"
    one(path, RULES)
    levels = ("{property: latency, value: 4, unit: h}", "{property: retention, value: 3, unit: y}")
    path.write_text(path.read_text() + "slaProperties:\n" + "".join(f"  - {level}\n" for level in levels))
    line = path.read_text().splitlines().index("slaProperties:") + 2
    said = export(form, path).err
    assert f"it.odcs.yaml:{line}: the service level `latency` is left out" in said
    assert f"it.odcs.yaml:{line + 1}: the service level `retention` is left out" in said
