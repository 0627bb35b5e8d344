"""Numbers mean what is written: whatever scale the column has, and however they are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal as Exact
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from support.commands import type_command
from tidemill.contracts.changes.compare import changes_of
from tidemill.contracts.changes.described import Described, described
from tidemill.contracts.conditions import Condition
from tidemill.contracts.findings import Level
from tidemill.contracts.lint import Finding, lint
from tidemill.contracts.predicates import sql_of
from tidemill.core.contract.contract import Between, OneOf
from tidemill.core.contract.row_checks import NoneOf
from tidemill.core.contract.schema import DataType, Decimal, Scalar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TheError = Callable[[Path, str], Finding]
WIDE, WHOLE = Decimal(38, 2), Decimal(38, 0)

REGULATED = "freshness {} driver: regulatory"

HELD: list[tuple[Condition, DataType, str, list[str], list[bool]]] = [
    (Between(column="x", maximum=0.005), WIDE, "`x` <= 0.00", ["0.00", "0.01"], [True, False]),
    (Between(column="x", minimum=0.005), WIDE, "`x` >= 0.01", ["0.00", "0.01"], [False, True]),
    (Between(column="x", minimum=5.5, exclusive_minimum=True), WHOLE, "`x` >= 6", ["5", "6"], [False, True]),
    (Between(column="x", minimum=-0.5, exclusive_minimum=True), Scalar.LONG, "`x` > -0.5", ["-1", "0"], [False, True]),
    (Between(column="x", minimum=1e-20), Scalar.LONG, "`x` >= 1", ["0", "1"], [False, True]),
    (Between(column="x", minimum=1, exclusive_minimum=True), WIDE, "`x` > 1", ["1.00", "1.01"], [False, True]),
    (OneOf(column="x", values=(0.5, 2)), WHOLE, "`x` IN (2)", ["1", "2"], [False, True]),
    (OneOf(column="x", values=(0.5,)), WHOLE, "`x` IS NULL", ["0", "1"], [False, False]),
    (NoneOf(column="x", values=(0.5, 2)), WHOLE, "`x` NOT IN (2)", ["1", "2"], [True, False]),
    (NoneOf(column="x", values=(0.5,)), WHOLE, "true", ["0", "1"], [True, True]),
]


@pytest.mark.parametrize(("condition", "of", "sql"), [case[:3] for case in HELD])
def test_a_bound_between_two_values_of_the_column_is_the_nearer_value(condition: Any, of: DataType, sql: str) -> None:
    assert sql_of(condition, {"x": of}) == sql


@pytest.mark.spark
def test_spark_rounds_no_bound_of_a_column_with_38_digits(spark: SparkSession) -> None:
    for condition, of, _, values, kept in HELD:
        kind = pa.int64() if of is Scalar.LONG else pa.decimal128(38, of.scale)  # type: ignore[union-attr]
        rows = spark.createDataFrame(pa.table({"x": pa.array([Exact(v) for v in values]).cast(kind)}))
        assert [r[0] for r in rows.selectExpr(sql_of(condition, {"x": of})).collect()] == kept, condition


def column(options: str, physical: str = "decimal(38,0)") -> str:
    return f"- {{name: x, logicalType: number, physicalType: '{physical}', logicalTypeOptions: {{{options}}}}}"


def test_a_number_with_an_exponent_is_the_number_that_is_written(file: Any) -> None:
    zeros = "1" + "0" * 23
    prints = {lint_of(file, column(f"minimum: {zeros}, maximum: {text}")) for text in (zeros, "1e23", "1.0e+23")}
    assert prints == {()}
    found = lint_of(file, column(f"minimum: {zeros}1, maximum: 1e23"))
    assert any("is above" in message for message in found), found


def lint_of(file: Any, properties: str) -> tuple[str, ...]:
    return tuple(f.message for f in lint(file.an_output(properties)) if f.severity is Level.ERROR)


def test_two_ways_to_write_a_number_are_no_change(file: Any, tmp_path: Path) -> None:
    old, new = tmp_path / "old.odcs.yaml", tmp_path / "new.odcs.yaml"
    old.write_text(file.an_output(column("maximum: 1e23")).read_text())
    new.write_text(file.an_output(column(f"maximum: 1{'0' * 23}")).read_text())
    assert type_command(None, "contract", "diff", old, new).out.splitlines()[-1] == "0 changes, 0 breaking"


def test_a_moment_that_no_clock_in_utc_has_is_refused_where_it_stands(file: Any, the_error: TheError) -> None:
    for moment in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        text = f"- {{name: x, logicalType: timestamp, logicalTypeOptions: {{minimum: '{moment}'}}}}"
        assert "expected a time in ISO 8601" in the_error(file.an_output(text), "minimum").message


def test_long_numbers_are_exported_to_dbt(file: Any) -> None:
    quality = "[{metric: invalidValues, mustBe: 0, arguments: {validValues: [0.12345678901234567891, 1]}}]"
    text = f"- {{name: x, logicalType: number, physicalType: 'decimal(38,20)', quality: {quality}}}"
    said = type_command(None, "contract", "export", "dbt", file.an_output(text))
    assert (said.code, "0.12345678901234567891" in said.out) == (0, True), said.out + said.err


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (
            ["freshness 1", "freshness 1 driver: regulatory"],
            ["freshness 1", "freshness 9 driver: regulatory"],
            ["promise-weaker"],
        ),
        (["freshness 1", "freshness 1 driver: regulatory"], ["freshness 1"], ["promise-removed"]),
        (["freshness 1 element: 'x, y'"], ["Freshness 1 element: 'y,x'"], []),
    ],
)
def test_service_levels_are_told_apart_by_what_they_are_about(
    file: Any, tmp_path: Path, old: list[str], new: list[str], kinds: list[str]
) -> None:
    found: list[Mapping[str, Described]] = []
    for name, levels in (("old", old), ("new", new)):
        path = tmp_path / name / "it.odcs.yaml"
        path.parent.mkdir()
        path.write_text(file.an_output(TWO, top=promised(levels)).read_text())
        objects, errors = described(path)
        assert not errors
        found.append(objects)
    assert [change.kind for change in changes_of(*found)] == kinds


TWO = "- {name: x, logicalType: integer}\n- {name: y, logicalType: integer}"


def promised(levels: list[str]) -> str:
    lines = ["slaProperties:"]
    for level in levels:
        name, value, *more = level.split(" ", 2)
        lines.append(f"  - {{property: {name}, value: {value}, unit: h{''.join(', ' + each for each in more)}}}")
    return "\n".join(lines) + "\n"
