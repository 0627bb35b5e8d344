"""Translates table rules to configurations of Great Expectations. Nothing is imported or run here.

Great Expectations turns bounds into floats and treats NaN as each engine does. Both are corrected here: bounds stay
exact, and NaN breaks every bound and every comparison.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, assert_never

from tidemill.contracts.predicates import whole_java, whole_python
from tidemill.contracts.values import as_value
from tidemill.core.contract.contract import (
    Between,
    Check,
    Compare,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    TableRule,
    Unique,
)
from tidemill.core.contract.schema import DataType, Scalar
from tidemill.core.sql.text import quoted

EXACTLY_BETWEEN = "expect_column_values_to_be_between_exactly"
"""Tidemill's own expectation: it keeps bounds exact, because floats cannot tell 2**53 from 2**53 + 1."""

_LONGEST = 2**63
_INTEGERS = (Scalar.INTEGER, Scalar.LONG)

Call = tuple[str, dict[str, Any]]
"""The type and the arguments of an expectation."""


class Engine(StrEnum):
    """The engine that Great Expectations computes with."""

    PANDAS = "pandas"
    SPARK = "spark"


def expectation(rule: TableRule, types: Mapping[str, DataType], engine: Engine) -> dict[str, Any]:
    """Return the configuration of the expectation for a rule. Its `meta` holds the rule's name as `rule`."""
    kind, arguments = _call(rule.check, types, engine)
    return {"type": kind, "kwargs": arguments, "meta": {"rule": rule.name}}


def _call(check: Check, types: Mapping[str, DataType], engine: Engine) -> Call:
    match check:
        case NotNull(column=column):
            return "expect_column_values_to_not_be_null", {"column": column}
        case Unique(columns=columns) if len(columns) == 1:
            return "expect_column_values_to_be_unique", {"column": columns[0]}
        case Unique(columns=columns):
            arguments = {"column_list": list(columns), "ignore_row_if": "any_value_is_missing"}
            return "expect_compound_columns_to_be_unique", arguments
        case Between():
            return _between(check, types[check.column], engine)
        case OneOf(column=column, values=values):
            allowed = [as_value(value, types[column]) for value in values]
            return "expect_column_values_to_be_in_set", {"column": column, "value_set": allowed}
        case Matches(column=column, pattern=pattern):
            regex = whole_python(pattern) if engine is Engine.PANDAS else whole_java(pattern)
            return "expect_column_values_to_match_regex", {"column": column, "regex": regex}
        case LengthBetween(column=column, minimum=low, maximum=high):
            sized = {"column": column, "min_value": low, "max_value": high}
            return "expect_column_value_lengths_to_be_between", sized
        case RowCountBetween(minimum=low, maximum=high):
            return "expect_table_row_count_to_be_between", {"min_value": low, "max_value": high}
        case Compare():
            return _compare(check, types, engine)
        case _:
            assert_never(check)


def _between(check: Between, data_type: DataType, engine: Engine) -> Call:
    low, high = (None if b is None else _bound(b, data_type, engine) for b in (check.minimum, check.maximum))
    if high is None and data_type is Scalar.DOUBLE:
        # In Spark, NaN is greater than every number, even infinity.
        high = float("inf")
    return EXACTLY_BETWEEN, {
        "column": check.column,
        "min_value": low,
        "max_value": high,
        "strict_min": check.exclusive_minimum,
        "strict_max": check.exclusive_maximum,
    }


def _bound(value: int | float, data_type: DataType, engine: Engine) -> Any:
    if engine is Engine.SPARK and isinstance(value, int) and not -_LONGEST <= value < _LONGEST:
        # Spark has no integer literal beyond 64 bits, and no integer column holds one.
        return math.copysign(math.inf, value) if data_type in _INTEGERS else as_value(float(value), data_type)
    return as_value(value, data_type)


def _compare(check: Compare, types: Mapping[str, DataType], engine: Engine) -> Call:
    left, right = compared_columns(check, types, engine)
    first, second = (right, left) if check.operator in ("<", "<=") else (left, right)
    arguments = {"column_A": first, "column_B": second, "ignore_row_if": "either_value_is_missing"}
    if check.operator == "=":
        return "expect_column_pair_values_to_be_equal", arguments
    or_equal = check.operator in ("<=", ">=")
    return "expect_column_pair_values_a_to_be_greater_than_b", {**arguments, "or_equal": or_equal}


def compared_columns(check: Compare, types: Mapping[str, DataType], engine: Engine) -> tuple[str, str]:
    """The columns to compare. For doubles on Spark, these are the columns that `nan_safe` computes."""
    if engine is Engine.SPARK and types[check.left] is Scalar.DOUBLE:
        name = f"{check.left} {check.operator} {check.right}"
        return f"left of {name}", f"right of {name}"
    return check.left, check.right


def nan_safe(check: Compare) -> tuple[str, str]:
    """Spark SQL for both sides of a comparison of doubles, so that a NaN on either side breaks the rule."""
    left, right = quoted(check.left), quoted(check.right)
    first, second = ("1D", "0D") if check.operator in ("<", "<=") else ("0D", "1D")
    either = f"{left} IS NOT NULL AND {right} IS NOT NULL AND (isnan({left}) OR isnan({right}))"
    return f"if({either}, {first}, {left})", f"if({either}, {second}, {right})"


def columns_of(check: Check) -> tuple[str, ...]:
    """The columns that a check reads."""
    match check:
        case RowCountBetween():
            return ()
        case Unique(columns=columns):
            return columns
        case Compare(left=left, right=right):
            return (left, right)
        case _:
            return (check.column,)
