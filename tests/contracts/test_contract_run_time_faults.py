"""Lint names the parts of a predicate that can fail a batch, and only where the types of columns allow it."""

from __future__ import annotations

import time
from decimal import Decimal as Exact
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts.lint import lint
from tidemill.core.contract.exact_sums import exact
from tidemill.core.contract.run_time_faults import possible_faults
from tidemill.core.contract.schema import Array, Decimal, Scalar
from tidemill.core.sql.expressions import parsed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = {
    "a": Scalar.LONG,
    "i": Scalar.INTEGER,
    "x": Scalar.DOUBLE,
    "t": Scalar.STRING,
    "z": Scalar.LONG,
    "d": Decimal(38, 10),
    "e": Decimal(10, 2),
    "w": Decimal(38, 0),
    "b": Scalar.BOOLEAN,
    "n": Array(Scalar.LONG),
    "m": Array(Scalar.DOUBLE),
}
FAIL = [
    ("a / z > 1", "/", "try_divide"),
    ("x % z = 1", "%", "try_mod"),
    ("i div z > 1", "div", "try_divide"),
    ("cast(t AS INT) > 1", "cast", "try_cast"),
    ("cast(a AS INT) > 1", "cast", "try_cast"),
    ("cast(x AS BIGINT) > 1", "cast", "try_cast"),
    ("cast(e AS DECIMAL(9, 2)) > 1", "cast", "try_cast"),
    ("cast(e AS DECIMAL(9, 1)) > 1", "cast", "try_cast"),
    ("cast(i AS DECIMAL(10, 1)) > 1", "cast", "try_cast"),
    ("d * d > 1", "*", "try_multiply"),
    ("w + w > 1", "+", "try_add"),
    ("-w - w < 1", "-", "try_subtract"),
    ("w * 10 > 1", "*", "try_multiply"),
    ("(d + 1) * e > 1", "*", "try_multiply"),
    ("int(t) > 1", "int", "try_cast"),
    ("date(t) > date'2020-01-01'", "date", "try_cast"),
    ("int(a) > 1", "int", "try_cast"),
    ("w / 2 > 1", "/", "try_divide"),
    ("w / 0.5 > 1", "/", "try_divide"),
    ("coalesce(w, 0) * 10 > 1", "*", "try_multiply"),
    ("CASE WHEN a > 0 THEN w ELSE 0 END * 10 > 1", "*", "try_multiply"),
    ("abs(w) + 1 > 1", "+", "try_add"),
    ("substring(t, a) = 'x'", "substring", "try_cast(... AS INT)"),
    ("left(t, x) = 'x'", "left", "try_cast(... AS INT)"),
    ("get(n, a) = 1", "get", "try_cast(... AS INT)"),
]
FAIL_AT_THE_LEAST = [("a div -1 > 1", "div", "try_divide"), ("a div nullif(z, 0) > 1", "div", "try_divide")]
"""What fails for the least value, and not for the largest."""
HOLD = [
    "a / 2 > 1",
    "x / 2 > 1",
    "a % 10 = 0",
    "i div 3 > 1",
    "a + 1 > 0",
    "a * a > 0",
    "x * x > 0",
    "d + d > 1",
    "d * 2 > 1",
    "e * e > 1",
    "e * e * e > 1",
    "cast(t AS STRING) = 'x'",
    "cast(d AS STRING) = 'x'",
    "cast(i AS BIGINT) > 1",
    "cast(d AS DOUBLE) > 1",
    "cast(e AS DECIMAL(10, 1)) > 1",
    "cast(i AS DECIMAL(12, 2)) > 1",
    "try_cast(t AS INT) > 1",
    "try_divide(a, z) > 1",
    "a * 1.5 > 1",
    "a / -2 > 1",
    "e / 0.01 > 1",
    "d / 2 > 1",
    "a % -1 = 0",
    "cast(null AS INT) > a",
    "cast(b AS INT) > 0",
    "int(b) > 0",
    "cast(x AS BOOLEAN)",
    "cast(a AS TIMESTAMP) > timestamp'2020-01-01'",
    "string(d) = 'x'",
    "greatest(w, d) > 1",
    "substring(t, i) = 'x'",
    "left(t, 3) = 'x'",
]


@pytest.mark.parametrize(("predicate", "sign", "instead"), [*FAIL, *FAIL_AT_THE_LEAST])
def test_what_can_fail_is_named_with_what_to_write_instead(predicate: str, sign: str, instead: str) -> None:
    assert [(fault.sign, fault.instead) for fault in possible_faults(predicate, TYPES)] == [(sign, instead)]


@pytest.mark.parametrize("predicate", HOLD)
def test_what_the_types_rule_out_is_not_named(predicate: str) -> None:
    assert possible_faults(predicate, TYPES) == ()


@pytest.mark.spark
def test_spark_agrees_about_the_largest_values(spark: SparkSession) -> None:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    largest = {
        "a": pa.array([2**63 - 1], pa.int64()),
        "i": pa.array([2**31 - 1], pa.int32()),
        "x": pa.array([1e300]),
        "t": pa.array(["no a number"]),
        "z": pa.array([0], pa.int64()),
        "d": pa.array([Exact("9" * 28 + "." + "9" * 10)], pa.decimal128(38, 10)),
        "e": pa.array([Exact("99999999.99")], pa.decimal128(10, 2)),
        "w": pa.array([Exact("9" * 38)], pa.decimal128(38, 0)),
        "b": pa.array([True]),
        "n": pa.array([[1]], pa.list_(pa.int64())),
    }
    rows = spark.createDataFrame(pa.table(largest)).repartition(1).persist()
    for predicate in (*HOLD, *NOT_BY_NAME):
        rows.filter(f"NOT ({exact(predicate, TYPES).sql})").count()
    for predicate, *_ in (*FAIL, *BY_NAME):
        try:
            rows.filter(f"NOT ({exact(predicate, TYPES).sql})").count()
        except (PySparkException, Py4JJavaError):
            continue
        pytest.fail(f"Spark computes {predicate}")


BY_NAME = [
    ("unix_timestamp(t) = 1", "unix_timestamp"),
    ("to_unix_timestamp(t, 'yyyy') = 1", "to_unix_timestamp"),
    ("unbase64(t) IS NULL", "unbase64"),
    ("make_date(i, 1, 1) IS NULL", "make_date"),
    ("timestamp_millis(a) IS NULL", "timestamp_millis"),
    ("next_day(date'2020-01-01', t) IS NULL", "next_day"),
    ("bit_get(a, i) = 1", "bit_get"),
    ("date_format(timestamp'2020-01-01', t) = 'x'", "date_format"),
    ("encode(t, t) IS NULL", "encode"),
    ("from_unixtime(i, t) = 'x'", "from_unixtime"),
    ("pmod(a, z) = 1", "pmod"),
]
NOT_BY_NAME = [
    "next_day(date'2020-01-01', 'MO') IS NULL",
    "bit_get(a, 3) = 1",
    "date_format(timestamp'2020-01-01', 'yyyy') = 'x'",
    "encode(t, 'utf-8') IS NULL",
    "timestamp_micros(a) IS NULL",
    "pmod(a, 7) = 1",
]


@pytest.mark.parametrize(("predicate", "name"), BY_NAME)
def test_functions_that_fail_for_some_values_are_named(predicate: str, name: str) -> None:
    assert parsed(predicate).may_fail == (name,)


@pytest.mark.parametrize("predicate", NOT_BY_NAME)
def test_functions_whose_arguments_are_written_do_not_fail(predicate: str) -> None:
    assert parsed(predicate).may_fail == ()


@pytest.mark.parametrize(
    ("predicate", "signs"),
    [
        ("greatest(hash(t) * 2, 0) > 1", ("*",)),
        ("exists(sequence(i, 3), n -> hash(n) + 1 > 0)", ("+",)),
        ("exists(n, x -> x * 2 > 1)", ("*",)),
        ("exists(n, x -> x > a + 1)", ()),
        ("exists(m, x -> x * 2 > 1)", ()),
        ("greatest(a * 1.5, 0) > 1", ()),
        ("greatest(length(t) * 2, 0) > 1", ()),
    ],
)
def test_sums_of_what_functions_give_are_looked_at(predicate: str, signs: tuple[str, ...]) -> None:
    assert exact(predicate, TYPES).may_fail == signs


COLUMNS = """
- {name: a, logicalType: integer, description: d, primaryKey: true}
- {name: t, logicalType: string, description: d}
- name: d
  logicalType: number
  physicalType: decimal(38,10)
  description: d
  quality: [{type: sql, query: "SELECT COUNT(*) FROM ${object} WHERE ${column} * d > 1", mustBe: 0}]
"""


@pytest.mark.parametrize(
    ("condition", "part"),
    [("cast(t AS INT) > 1", "`cast` in `CAST(t AS INT)`"), ("to_date(t) IS NULL", "`to_date`"), ("a > 1", None)],
)
def test_rules_of_type_sql_are_looked_at_too(file: Any, condition: str, part: str | None) -> None:
    quality = f'- {{type: sql, query: "SELECT COUNT(*) FROM ${{object}} WHERE {condition}", mustBe: 0}}'
    path = file.an_output(COLUMNS, quality=quality)
    found = [finding for finding in lint(path) if "fails the whole batch" in finding.message]
    messages = [finding.message for finding in found]
    after = "fails the whole batch at the first value that it cannot take"
    of_column = "`*` in `d * d` fails the whole batch where the number leaves 38 digits"
    assert messages == ([f"{part} {after}"] if part else []) + [of_column.replace("d * d", "`d` * d")]
    assert found[-1].fix == "use try_multiply, which is null there"
    assert all(finding.line > 1 for finding in found)


@pytest.mark.parametrize(("part", "operator"), [("d", "+"), ("d", "*"), ("l / d", "+"), ("l / d", "*")])
def test_a_predicate_as_long_as_it_may_be_is_looked_at_in_a_moment(part: str, operator: str) -> None:
    begin = time.process_time()
    found = possible_faults(f"{f' {operator} '.join([part] * 2_000)} > 0", {"d": Decimal(9, 2), "l": Scalar.LONG})
    assert found
    # Each of its parts looked at from each other one takes a minute.
    assert time.process_time() - begin < 5
