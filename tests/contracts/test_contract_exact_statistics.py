"""Sums, means and extremes of integers and decimals are compared with all digits, in memory and on Spark alike."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as Exact
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts.audit import audit
from tidemill.core.contract.contract import Contract, Expectation, TableRule
from tidemill.core.contract.long_number import number_of
from tidemill.core.contract.schema import Decimal, Field, Scalar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST = 2**63 - 1
ROWS = pa.table(
    {
        "d": pa.array([Exact("100000000000000000.00"), Exact("0.01"), None], pa.decimal128(38, 2)),
        "w": pa.array([Exact(10**38 - 1), Exact(10**38 - 1), Exact(10**38 - 1)], pa.decimal128(38, 0)),
        "n": pa.array([MOST, MOST, None], pa.int64()),
        "i": pa.array([2**31 - 1, 1, 1], pa.int32()),
        "none": pa.array([None, None, None], pa.int64()),
    }
)
TYPES = {
    "d": Decimal(38, 2),
    "w": Decimal(38, 0),
    "n": Scalar.LONG,
    "i": Scalar.INTEGER,
    "none": Scalar.LONG,
}
CASES: list[tuple[str, str, dict[str, Any], str]] = [
    ("d", "sum", {"max_value": 10**17}, "observed 100000000000000000.01"),
    ("d", "sum", {"max_value": number_of("100000000000000000.01")}, ""),
    (
        "d",
        "sum",
        {"min_value": number_of("100000000000000000.01"), "strict_min": True},
        "observed 100000000000000000.01",
    ),
    ("d", "mean", {"max_value": 5 * 10**16}, "observed 50000000000000000.005"),
    ("d", "mean", {"max_value": number_of("50000000000000000.005")}, ""),
    ("d", "min", {"min_value": 0.01, "max_value": 0.01}, ""),
    ("d", "max", {"max_value": 10**17, "strict_max": True}, "observed 100000000000000000"),
    ("w", "sum", {"max_value": 1}, "observed 299999999999999999999999999999999999997"),
    ("w", "mean", {"min_value": 10**38 - 1}, ""),
    ("n", "sum", {"min_value": 1}, ""),
    ("n", "mean", {"max_value": MOST - 1}, f"observed {MOST}"),
    ("i", "sum", {"max_value": 2**31}, "observed 2147483649"),
    ("i", "mean", {"max_value": 715827883}, ""),
    ("none", "sum", {"min_value": 0}, ""),
    ("none", "mean", {"min_value": 0}, "observed None"),
    ("none", "max", {"max_value": 0}, "observed None"),
]


def contract() -> Contract:
    rules = []
    for place, (column, name, arguments, _) in enumerate(CASES):
        told = tuple(sorted({"column": column, **arguments}.items()))
        check = Expectation(column=column, kind=f"expect_column_{name}_to_be_between", arguments=told)
        rules.append(TableRule(name=f"{place} {column} {name}", check=check))
    fields = tuple(Field(name=name, type=of) for name, of in TYPES.items())
    return Contract(name="orders", version="1.0.0", fields=fields, table_rules=tuple(rules))


def check(rows: pa.Table | DataFrame) -> None:
    results = audit("orders", rows, contract())
    assert {r.rule: (r.passed, r.observed) for r in results} == {
        rule.name: (not seen, seen) for rule, (*_, seen) in zip(contract().table_rules, CASES, strict=True)
    }


def test_statistics_of_exact_numbers_are_exact_in_memory() -> None:
    check(ROWS)


@pytest.mark.spark
def test_statistics_of_exact_numbers_are_the_same_on_spark(spark: SparkSession) -> None:
    check(spark.createDataFrame(ROWS).repartition(2))


def test_a_mean_without_an_end_is_shown_with_its_first_digits() -> None:
    rule = TableRule(
        name="mean",
        check=Expectation(
            column="n", kind="expect_column_mean_to_be_between", arguments=(("column", "n"), ("max_value", 0))
        ),
    )
    thirds = Contract(name="o", version="1.0.0", fields=(Field(name="n", type=Scalar.LONG),), table_rules=(rule,))
    [result] = audit("orders", pa.table({"n": [1, 0, 0]}), thirds)
    assert result.observed.startswith("observed 0.333333333333")


def test_bounds_of_statistics_keep_their_digits(an_output: Any) -> None:
    text = """
    - name: x
      logicalType: number
      physicalType: decimal(38,20)
      quality:
        - type: custom
          engine: greatExpectations
          implementation: {type: expect_column_sum_to_be_between, kwargs: {min_value: 0.12345678901234567891}}
    """
    [rule] = an_output(text).table_rules
    assert dict(rule.check.arguments)["min_value"] == number_of("0.12345678901234567891")


SETS = [("in", (0.1, 2), True), ("in", (2,), False), ("contain", (0.1,), True), ("contain", (3,), False)]


def check_sets(rows: pa.Table | DataFrame) -> None:
    kinds = {
        "in": "expect_column_distinct_values_to_be_in_set",
        "contain": "expect_column_distinct_values_to_contain_set",
    }
    rules = tuple(
        TableRule(
            name=f"{column} {kind} {place}",
            check=Expectation(column=column, kind=kinds[kind], arguments=(("column", column), ("value_set", values))),
        )
        for place, (column, kind, values, _) in enumerate(_sets())
    )
    fields = (Field(name="d", type=Decimal(38, 20)), Field(name="day", type=Scalar.DATE))
    results = audit("orders", rows, Contract(name="o", version="1.0.0", fields=fields, table_rules=rules))
    assert [r.passed for r in results] == [passed for *_, passed in _sets()]


def _sets() -> list[tuple[str, str, tuple[Any, ...], bool]]:
    days = [("in", ("2024-01-31",), True), ("contain", ("2024-01-30",), False)]
    long = [("in", (number_of("0.10000000000000000001"), 2), False)]
    return [("d", *each) for each in (*SETS, *long)] + [("day", *each) for each in days]


DISTINCT = pa.table(
    {
        "d": pa.array([Exact("0.1"), Exact(2)], pa.decimal128(38, 20)),
        "day": pa.array([dt.date(2024, 1, 31)] * 2),
    }
)


def test_sets_of_decimals_and_days_are_compared_as_such_in_memory() -> None:
    check_sets(DISTINCT)


@pytest.mark.spark
def test_sets_of_decimals_and_days_are_compared_as_such_on_spark(spark: SparkSession) -> None:
    check_sets(spark.createDataFrame(DISTINCT))
