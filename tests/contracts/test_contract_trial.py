"""Rules of records are tried by masks and in DuckDB; they say what Spark says in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tidemill.contracts.changes.described import described
from tidemill.core.contract.row_rules import UNMATCHED
from tidemill.core.errors import ContractError, DeclarationError
from tidemill.core.sql.text import select
from tidemill.engine.spark.query import ROWS, of_driver, query
from tidemill.inspect.contract_trial.conditions import broken_records
from tidemill.inspect.contract_trial.tables import try_rows
from tidemill.tables.arrow_types import arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTRACT = """
apiVersion: v3.1.0
kind: DataContract
id: it
version: 1.0.0
status: active
schema:
  - name: it
    logicalType: object
    customProperties: [{property: format, value: json}]
    properties:
      - {name: d, logicalType: number, logicalTypeOptions: {minimum: 0, maximum: 10}}
      - {name: n, logicalType: integer, logicalTypeOptions: {exclusiveMinimum: -5, multipleOf: 3}}
      - name: e
        logicalType: number
        physicalType: decimal(10,2)
        logicalTypeOptions: {maximum: 0.1}
      - {name: s, logicalType: string, logicalTypeOptions: {minLength: 2, maxLength: 3}}
      - {name: day, logicalType: date, logicalTypeOptions: {minimum: '2026-01-01'}}
      - {name: list, logicalType: array, items: {logicalType: integer}, logicalTypeOptions: {uniqueItems: true}}
    quality:
      - {type: custom, engine: tidemill, name: plain, implementation: "n > 0 OR s = 'aa'"}
      - {type: custom, engine: tidemill, name: needs_spark, implementation: "length(s) + 0.5 < n"}
"""
ROWS_OF_EDGES = [
    {"d": None, "n": None, "e": None, "s": None, "day": None, "list": None},
    {"d": float("nan"), "n": -5, "e": "0.10", "s": "a", "day": "2025-12-31", "list": [1, 1]},
    {"d": -0.0, "n": -4, "e": "0.11", "s": "aa", "day": "2026-01-01", "list": [None, None]},
    {"d": float("inf"), "n": 3, "e": "-1.00", "s": "äöü", "day": "9999-12-31", "list": []},
    {"d": 10.0, "n": 2**63 - 1, "e": "0.00", "s": "𝄞𝄞𝄞𝄞", "day": "0001-01-01", "list": [1, None]},
]


@pytest.mark.spark
def test_what_breaks_a_rule_is_what_breaks_its_predicate_in_spark(tmp_path: Path, spark: SparkSession) -> None:
    path = tmp_path / "it.odcs.yaml"
    path.write_text(CONTRACT, encoding="utf-8")
    found, errors = described(path)
    assert errors == []
    contract, rules = found["it"].contract, found["it"].rules
    schema = arrow_schema(contract.fields)
    names = {"e": pa.string(), "day": pa.string()}
    rows = pa.Table.from_pylist(
        ROWS_OF_EDGES, schema=pa.schema([pa.field(f.name, names.get(f.name, f.type)) for f in schema])
    ).cast(schema)
    types = {f.name: f.type for f in contract.fields}
    asked: list[str] = []

    def session(rule: str) -> SparkSession:
        asked.append(rule)
        return spark

    numbered = of_driver(spark, rows.append_column("_row", pa.array(range(len(rows)))))
    for rule in contract.row_rules:
        assert rule.pattern is None, UNMATCHED
        said = query(spark, select(["_row"], ROWS, where=f"NOT ({rule.predicate})"), numbered).toArrow()
        ours = broken_records(rules[rule.name], rows, types, session)
        assert sorted(said.column("_row").to_pylist()) == ours.tolist(), rule.name
    assert len(contract.row_rules) == len(rules) >= 11
    assert asked == ["needs_spark"]


def test_a_predicate_that_fails_is_named_without_the_plan_of_spark(tmp_path: Path) -> None:
    path = tmp_path / "it.odcs.yaml"
    path.write_text(CONTRACT, encoding="utf-8")
    found = described(path)[0]["it"]
    types = {f.name: f.type for f in found.contract.fields}
    rows = pa.Table.from_pylist([{}], schema=arrow_schema(found.contract.fields))

    def session(rule: str) -> SparkSession:
        raise DeclarationError(f"rule {rule}: [CAST] not a number\n'Filter unresolvedalias", fix="plan the batch anew")

    with pytest.raises(ContractError) as refused:
        broken_records(found.rules["needs_spark"], rows, types, session, found.contract.source)
    line = next(n for n, text in enumerate(CONTRACT.splitlines(), 1) if "needs_spark" in text)
    assert refused.value.message == f"{path}:{line}: rule `needs_spark`: rule needs_spark: [CAST] not a number"
    assert "try_cast" in refused.value.fix


def no_spark(rule: str) -> SparkSession:
    raise AssertionError(f"{rule} needs no Spark")


def test_column_whose_values_the_type_cannot_hold_breaks_its_type(tmp_path: Path) -> None:
    path = tmp_path / "it.odcs.yaml"
    head = CONTRACT.partition("    customProperties")[0]
    path.write_text(f"{head}    properties:\n      - {{name: at, logicalType: timestamp}}\n", encoding="utf-8")
    found, errors = described(path)
    assert errors == []
    for nanoseconds, said in ((1_000, ""), (1_001, "cannot hold all of its values")):
        rows = pa.table({"at": pa.array([nanoseconds], pa.int64()).cast(pa.timestamp("ns", tz="UTC"))})
        [outcome] = try_rows(found["it"], rows, no_spark).outcomes
        assert said in outcome.observed
        assert bool(outcome.observed) == bool(said)
