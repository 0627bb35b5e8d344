"""Translates conditions to Spark SQL.

Every predicate is Spark SQL that cannot fail under ANSI for any value of the columns' types: it only compares, matches
and measures, and never casts. Predicates of users are not changed: one that casts (instead of `try_cast`), divides
(instead of `try_divide`) or parses fails the whole batch at the first bad value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal as Exact
from typing import assert_never

from tidemill.contracts.conditions import Condition, Predicate
from tidemill.contracts.units import CONTEXT, scale_of, units_of
from tidemill.core.contract.contract import (
    Between,
    Compare,
    Expectation,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    Unique,
)
from tidemill.core.contract.row_checks import (
    Bounded,
    ItemsBetween,
    ItemsDistinct,
    MultipleOf,
    NoneOf,
    NotNullInside,
    Plain,
    RowCheck,
)
from tidemill.core.contract.schema import DataType, Decimal, Scalar
from tidemill.core.sql.text import quoted, text_literal

_ANY_CASE = re.compile(r"(\A|\(\?:)\(\?(i|is|si)\)")


def sql_of(condition: Condition, types: Mapping[str, DataType]) -> str:
    """Return the condition on one row as a Spark SQL predicate over columns of these types.

    The predicate is true, false, or null if the condition does not apply to the row. NaN breaks every bound and every
    comparison.

    Raises:
        ValueError: the condition is about all rows together.
    """
    match condition:
        case Predicate(sql=sql) | Holds(predicate=sql):
            return sql
        case NotNull(column=column):
            return f"{quoted(column)} IS NOT NULL"
        case Between():
            return _between(condition, types[condition.column])
        case OneOf(column=column, values=values):
            listed = _literals(values, types[column])
            return f"{quoted(column)} IN ({listed})" if listed else f"{quoted(column)} IS NULL"
        case Matches(column=column, pattern=pattern):
            return f"{quoted(column)} RLIKE {text_literal(whole_java(pattern))}"
        case LengthBetween(column=column, minimum=minimum, maximum=maximum):
            return _sized(f"char_length({quoted(column)})", minimum, maximum)
        case Compare():
            return _compare(condition, types)
        case Unique() | RowCountBetween() | Expectation():
            raise ValueError(f"not about one row: {condition}")
        case _:
            return _sql_of_row_only(condition, types)


def _sql_of_row_only(condition: RowCheck, types: Mapping[str, DataType]) -> str:
    name = quoted(condition.column)
    data_type = types[condition.column]
    match condition:
        case Bounded(operator=operator, bound=bound):
            return f"{name} {operator} {literal(bound, data_type)}"
        case MultipleOf(factor=factor):
            return f"{name} % {literal(factor, data_type)} = 0"
        case NoneOf(values=values, null_too=null_too):
            listed = _literals(values, data_type)
            parts = [f"{name} IS NOT NULL"] if null_too else []
            return " AND ".join([*parts, *([f"{name} NOT IN ({listed})"] if listed else [])]) or "true"
        case ItemsBetween(minimum=minimum, maximum=maximum):
            return _sized(f"array_size({name})", minimum, maximum)
        case NotNullInside():
            raise ValueError(f"records are checked for it where they are decoded: {condition}")
        case ItemsDistinct():
            return f"array_size(array_distinct({name})) = array_size({name})"
        case _:
            assert_never(condition)


_WHOLE: Mapping[DataType, int] = {Scalar.INTEGER: 10, Scalar.LONG: 19}
_MOST_DIGITS = 38


def _between(check: Between, data_type: DataType) -> str:
    name = quoted(check.column)
    parts = []
    if check.minimum is not None:
        least = _bound(check.minimum, data_type, lower=True, exclusive=check.exclusive_minimum)
        parts.append(f"{name} {least}")
    if check.maximum is not None:
        most = _bound(check.maximum, data_type, lower=False, exclusive=check.exclusive_maximum)
        parts.append(f"{name} {most}")
    if data_type is Scalar.DOUBLE:
        parts.append(f"NOT isnan({name})")
    return " AND ".join(parts)


def _bound(limit: int | float, data_type: DataType, *, lower: bool, exclusive: bool) -> str:
    """The comparison with a bound; where Spark would round the bound, with the nearest one that the column can hold."""
    sign = ">" if lower else "<"
    if _is_held(limit, data_type):
        return f"{sign}{'' if exclusive else '='} {literal(limit, data_type)}"
    units = units_of(limit, data_type, lower=lower, exclusive=exclusive)
    return f"{sign}= {Exact(units).scaleb(-scale_of(data_type), CONTEXT):f}"


def _is_held(value: Plain, data_type: DataType) -> bool:
    """Whether Spark compares a value exactly with a column: both as decimals of 38 digits that hold either."""
    whole = data_type.precision - data_type.scale if isinstance(data_type, Decimal) else _WHOLE.get(data_type)
    if whole is None or not isinstance(value, int | float):
        return True
    _, digits, exponent = Exact(repr(value)).normalize(CONTEXT).as_tuple()
    scale = max(-exponent, 0) if isinstance(exponent, int) else 0
    return scale <= scale_of(data_type) or max(whole, len(digits) - scale) + scale <= _MOST_DIGITS


def _compare(check: Compare, types: Mapping[str, DataType]) -> str:
    left, right = quoted(check.left), quoted(check.right)
    compared = f"{left} {check.operator} {right}"
    if types[check.left] is not Scalar.DOUBLE:
        return compared
    return f"if({left} IS NULL OR {right} IS NULL, null, {compared} AND NOT isnan({left}) AND NOT isnan({right}))"


def _sized(size: str, minimum: int | None, maximum: int | None) -> str:
    parts = [f"{size} >= {minimum}"] if minimum is not None else []
    return " AND ".join(parts + ([f"{size} <= {maximum}"] if maximum is not None else []))


def literal(value: Plain, data_type: DataType) -> str:
    """Return a value as a Spark SQL literal that compares exactly with columns of the type.

    For a DOUBLE column it is a double, for any other number an exact decimal: 0.1 means 0.1.
    """
    match data_type:
        case Scalar.DATE:
            return f"DATE {text_literal(str(value))}"
        case Scalar.TIMESTAMP:
            return f"TIMESTAMP {text_literal(str(value))}"
        case Scalar.BOOLEAN:
            return str(bool(value)).lower()
        case Scalar.DOUBLE:
            return f"{float(value)!r}D"
        case Scalar.INTEGER | Scalar.LONG | Decimal():
            return f"{Exact(repr(value)):f}"
        case _:
            return text_literal(str(value))


def _literals(values: Sequence[Plain], data_type: DataType) -> str:
    """The values without those that the column cannot hold and Spark would round."""
    return ", ".join(literal(value, data_type) for value in values if _is_held(value, data_type))


def whole_java(pattern: str) -> str:
    r"""Return the regular expression for Java, for the whole text.

    It uses `\z` because `$` also matches before a last line break, and `(?d)` so that only `\n` breaks a line. Without
    `u`, Java's `(?i)` knows letters of ASCII alone.
    """
    pattern = _ANY_CASE.sub(r"\1(?\2u)", pattern)
    return rf"(?d)\A(?:{pattern})\z"
