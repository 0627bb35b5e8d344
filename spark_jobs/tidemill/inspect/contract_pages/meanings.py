"""What a rule asks, in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from tidemill.contracts.conditions import Condition, Predicate
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
    RowCheck,
)


def meaning(condition: Condition) -> str:
    """The condition in words."""
    match condition:
        case Predicate(sql=sql) | Holds(predicate=sql):
            return sql
        case NotNull(column=column):
            return f"{column} is there"
        case Unique(columns=columns):
            return f"no two rows have the same {', '.join(columns)}"
        case Between():
            return _between(condition)
        case OneOf(column=column, values=values):
            return f"{column} is one of {_listed(values)}"
        case Matches(column=column, pattern=pattern):
            return f"{column} matches {pattern}"
        case LengthBetween(column=column, minimum=least, maximum=most):
            return f"{column} has {_from_to(least, most)} characters"
        case Compare(left=left, operator=operator, right=right):
            return f"{left} {operator} {right}"
        case RowCountBetween() | Expectation():
            return _of_all_rows(condition)
        case _:
            return _of_parts(condition)


def _of_all_rows(check: RowCountBetween | Expectation) -> str:
    if isinstance(check, RowCountBetween):
        return f"{_from_to(check.minimum, check.maximum)} rows"
    return f"{check.kind} of {check.column}: {', '.join(f'{name} {value}' for name, value in check.arguments)}"


def _of_parts(check: RowCheck) -> str:
    column = check.column
    match check:
        case Bounded(operator=operator, bound=bound):
            return f"{column} {operator} {bound}"
        case MultipleOf(factor=factor):
            return f"{column} is a multiple of {factor}"
        case NoneOf(values=values, null_too=null_too):
            return f"{column} is none of {_listed((*values, 'null') if null_too else values)}"
        case ItemsBetween(minimum=least, maximum=most):
            return f"{column} has {_from_to(least, most)} items"
        case ItemsDistinct():
            return f"{column} has no item twice"
        case NotNullInside(path=path):
            return f"{'.'.join((column, *path))} is there"
        case _:
            assert_never(check)


def _between(check: Between) -> str:
    low, high = ">" if check.exclusive_minimum else ">=", "<" if check.exclusive_maximum else "<="
    bounds = ((low, check.minimum), (high, check.maximum))
    return " and ".join(f"{check.column} {sign} {bound}" for sign, bound in bounds if bound is not None)


def _from_to(least: int | None, most: int | None) -> str:
    if least == most:
        return f"exactly {least}"
    if least is None or most is None:
        return f"at most {most}" if least is None else f"at least {least}"
    return f"{least} to {most}"


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return f"{shown}, and {len(values) - 20} more" if len(values) > 20 else shown
