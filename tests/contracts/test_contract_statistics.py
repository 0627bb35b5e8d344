"""Statistics over all rows, which Great Expectations computes: the same in memory and on Spark, and none forgotten."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidemill.contracts import expectation_engine
from tidemill.contracts.audit import audit
from tidemill.contracts.load import load_contract
from tidemill.core.contract.contract import Contract, Expectation, TableRule
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = pa.table({"n": pa.array([1, 2, 3, 4, None]), "x": [0.5, 1.5, 2.5, 3.5, 4.5], "s": ["a", "b", "b", "c", None]})
TYPES = {"n": Scalar.LONG, "x": Scalar.DOUBLE, "s": Scalar.STRING}


def statistic(column: str, name: str, **arguments: Any) -> Expectation:
    return Expectation(
        column=column, kind=f"expect_column_{name}", arguments=tuple(sorted({"column": column, **arguments}.items()))
    )


HOLD = (
    statistic("n", "max_to_be_between", min_value=4, max_value=4),
    statistic("n", "mean_to_be_between", min_value=2.5, max_value=2.5),
    statistic("n", "median_to_be_between", min_value=2, max_value=3),
    statistic("n", "min_to_be_between", max_value=1),
    statistic("x", "stdev_to_be_between", min_value=1.5, max_value=1.6),
    statistic("x", "sum_to_be_between", min_value=12.5, max_value=12.5),
    statistic("s", "unique_value_count_to_be_between", min_value=3, max_value=3),
    statistic("s", "proportion_of_unique_values_to_be_between", min_value=0.75, max_value=0.75),
    statistic("s", "distinct_values_to_be_in_set", value_set=("a", "b", "c", "d")),
    statistic("s", "distinct_values_to_contain_set", value_set=("a",)),
    statistic("s", "distinct_values_to_equal_set", value_set=("a", "b", "c")),
)
BREAK = (
    statistic("n", "max_to_be_between", max_value=4, strict_max=True),
    statistic("n", "mean_to_be_between", min_value=2.6),
    statistic("n", "median_to_be_between", min_value=3.5),
    statistic("n", "min_to_be_between", min_value=2),
    statistic("x", "stdev_to_be_between", max_value=1),
    statistic("x", "sum_to_be_between", max_value=12),
    statistic("s", "unique_value_count_to_be_between", max_value=2),
    statistic("s", "proportion_of_unique_values_to_be_between", min_value=0.8),
    statistic("s", "distinct_values_to_be_in_set", value_set=("a", "b")),
    statistic("s", "distinct_values_to_contain_set", value_set=("z",)),
    statistic("s", "distinct_values_to_equal_set", value_set=("a", "b", "c", "d")),
)


def a_contract(*checks: Expectation) -> Contract:
    return Contract(
        name="orders",
        version="1.0.0",
        fields=tuple(Field(name=n, type=t) for n, t in TYPES.items()),
        table_rules=tuple(TableRule(name=f"{n} {check.kind}", check=check) for n, check in enumerate(checks)),
    )


def test_a_statistic_is_computed_in_memory() -> None:
    results = audit("orders", ROWS, a_contract(*HOLD, *BREAK))
    assert [r.passed for r in results] == [True] * len(HOLD) + [False] * len(BREAK), list(results)
    assert results[len(HOLD)].observed == "observed 4"
    assert {r.observed for r in results[: len(HOLD)]} == {""}


@pytest.mark.spark
def test_a_statistic_is_the_same_on_spark(spark: SparkSession) -> None:
    results = audit("orders", spark.createDataFrame(ROWS), a_contract(*HOLD, *BREAK))
    assert [r.passed for r in results] == [True] * len(HOLD) + [False] * len(BREAK), list(results)


def test_a_statistic_that_great_expectations_does_not_know_is_noticed() -> None:
    contract = a_contract(HOLD[4], statistic("n", "nothing_that_is_known"))
    try:
        with pytest.raises(EngineError, match="answered 1 of 2 rules; without answer: 1 expect_column_nothing"):
            audit("orders", ROWS, contract)
    finally:
        expectation_engine._suite.cache_clear()


def test_a_statistic_that_cannot_be_computed_is_no_broken_rule() -> None:
    with pytest.raises(EngineError, match=r"rule `0 expect_column_mean_to_be_between` could not be checked"):
        audit("orders", ROWS, a_contract(statistic("s", "mean_to_be_between", min_value=0)))


RULE = """
- name: x
  logicalType: number
  quality:
    - {type: custom, engine: greatExpectations, implementation: {type: EXPECTATION, kwargs: {ARGUMENTS}}}
"""


def rule(expectation: str, arguments: str) -> str:
    return RULE.replace("EXPECTATION", expectation).replace("ARGUMENTS", arguments)


@pytest.mark.parametrize(
    ("expectation", "arguments", "expected"),
    [
        (
            "expect_column_mean_to_be_between",
            "minValue: 1, strictMax: true, max_value: 2.5",
            (("column", "x"), ("max_value", 2.5), ("min_value", 1), ("strict_max", True)),
        ),
        (
            "expect_column_distinct_values_to_be_in_set",
            "value_set: [1, 2.5]",
            (("column", "x"), ("value_set", (1, 2.5))),
        ),
    ],
)
def test_a_contract_states_statistics(an_output: Any, expectation: str, arguments: str, expected: Any) -> None:
    found = load_contract(an_output(rule(expectation, arguments)).source).table_rules[-1].check
    assert found == Expectation(column="x", kind=expectation, arguments=expected)


@pytest.mark.parametrize(
    ("expectation", "arguments", "words"),
    [
        ("expect_column_mean_to_be_between", "", "needs min_value or max_value"),
        ("expect_column_mean_to_be_between", "min_value: 3, max_value: 2", "nothing can pass"),
        ("expect_column_mean_to_be_between", "min_value: low", "`min_value` must be a number"),
        ("expect_column_distinct_values_to_equal_set", "value_set: [a]", "must be a list of values of the type of `x`"),
        ("expect_column_sum_to_be_between", "min_value: 1, rows: 2", "argument `rows` cannot be run"),
        ("expect_column_kl_divergence_to_be_less_than", "threshold: 1", "cannot be run; supported"),
    ],
)
def test_a_statistic_that_cannot_be_run_is_refused(
    file: Any, the_error: Any, expectation: str, arguments: str, words: str
) -> None:
    assert words in the_error(file.an_output(rule(expectation, arguments)), "greatExpectations").message


def test_a_statistic_of_text_is_refused(file: Any, the_error: Any) -> None:
    text = rule("expect_column_mean_to_be_between", "min_value: 1").replace("number", "string")
    assert "`x` is no number" in the_error(file.an_output(text), "greatExpectations").message


def test_only_a_contract_with_a_statistic_loads_great_expectations() -> None:
    program = (
        "import sys\n"
        "import pyarrow as pa\n"
        "from tidemill.contracts.audit import audit, warm_up\n"
        "from tidemill.core.contract.contract import Contract, NotNull, TableRule\n"
        "rules = (TableRule(name='r', check=NotNull(column='x')),)\n"
        "contract = Contract(name='o', version='1', fields=(), table_rules=rules)\n"
        "warm_up(contract)\n"
        "assert audit('o', pa.table({'x': [1]}), contract)[0].passed\n"
        "print('great_expectations' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "False"
