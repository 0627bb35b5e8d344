"""Some rows of a table may break a rule, if its contract says how many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tidemill.contracts.audit import audit
from tidemill.contracts.lint import Finding
from tidemill.core.contract.contract import Contract, NotNull, TableRule
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.contract.tolerance import Tolerance

Load = Callable[..., Contract]
TheError = Callable[..., Finding]

COLUMN = """
- name: x
  logicalType: string
  quality:
    - RULE
"""


def with_tolerance(tolerance: Tolerance) -> Contract:
    rule = TableRule(name="x.nullValues", check=NotNull(column="x"), tolerance=tolerance)
    return Contract(name="orders", version="1.0.0", fields=(Field(name="x", type=Scalar.LONG),), table_rules=(rule,))


@pytest.mark.parametrize(
    ("comparison", "numbers", "percent", "passed"),
    [
        ("mustBe", (2,), False, True),
        ("mustBe", (0,), False, False),
        ("mustNotBe", (2,), False, False),
        ("mustBeLessThan", (2,), False, False),
        ("mustBeLessThan", (40.0001,), True, True),
        ("mustBeLessThan", (40,), True, False),
        ("mustBeLessOrEqualTo", (40,), True, True),
        ("mustBeGreaterThan", (1,), False, True),
        ("mustBeGreaterOrEqualTo", (3,), False, False),
        ("mustBeBetween", (2, 3), False, True),
        ("mustNotBeBetween", (2, 3), False, False),
        ("mustBeBetween", (39, 41), True, True),
    ],
)
def test_as_many_rows_may_break_a_rule_as_it_allows(
    comparison: str, numbers: tuple[float, ...], percent: bool, passed: bool
) -> None:
    """Two of five rows are null, 40 percent."""
    tolerance = Tolerance(comparison=comparison, numbers=numbers, percent=percent)
    [result] = audit("orders", pa.table({"x": [None, 1, 2, None, 3]}), with_tolerance(tolerance))
    assert result.passed is passed
    assert result.observed == ("" if passed else "2 of 5 rows")
    assert result.expected == (None if passed else f"that {tolerance.words} break this: x is there")
    assert len(result.failing_rows) == (0 if passed else 2)


def test_a_rule_that_wants_bad_rows_has_none_to_show() -> None:
    tolerance = Tolerance(comparison="mustBeGreaterThan", numbers=(1,), percent=True)
    for values in ([1, 2], []):
        rows = pa.table({"x": pa.array(values, pa.int64())})
        [result] = audit("orders", rows, with_tolerance(tolerance))
        assert (result.passed, result.failing_rows) == (False, ())


@pytest.mark.parametrize(
    ("bounds", "tolerance"),
    [
        ("mustBe: 0", None),
        ("mustBeLessThan: 1", None),
        ("mustBeLessOrEqualTo: 0, unit: percent", None),
        ("mustBe: 5", Tolerance(comparison="mustBe", numbers=(5,))),
        ("mustBeLessThan: 1, unit: percent", Tolerance(comparison="mustBeLessThan", numbers=(1,), percent=True)),
        ("mustNotBeBetween: [3, 7], unit: rows", Tolerance(comparison="mustNotBeBetween", numbers=(3, 7))),
    ],
)
def test_some_rows_of_a_table_may_break_a_rule(
    an_output: Load, file: Any, the_error: TheError, bounds: str, tolerance: Tolerance | None
) -> None:
    rule = f"{{metric: nullValues, {bounds}}}"
    [found] = an_output(COLUMN.replace("RULE", rule)).table_rules
    assert found.tolerance == tolerance
    if tolerance is not None:
        error = the_error(file.an_input(COLUMN.replace("RULE", rule)), rule)
        assert f"{tolerance} cannot be run: records are checked one by one" in error.message


def test_a_tolerance_counts_one_kind_of_bad_values(file: Any, the_error: TheError) -> None:
    rule = "{metric: invalidValues, arguments: {validValues: [a], pattern: a}, mustBeLessThan: 5}"
    error = the_error(file.an_output(COLUMN.replace("RULE", rule)), rule)
    assert "a tolerance needs one of validValues and pattern" in error.message
