"""What a rule asks, in a few words: for pages, findings and what an audit says about a broken rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from tidemill.contracts.conditions import Condition, Predicate, Rule
from tidemill.core.contract.contract import (
    Argument,
    Between,
    Compare,
    Expectation,
    Holds,
    LengthBetween,
    Matches,
    NotNull,
    OneOf,
    RowCountBetween,
    TableRule,
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
from tidemill.core.contract.scope import Scope
from tidemill.core.contract.tolerance import Tolerance

EACH_ROW = "each row by itself"
"""What rules look at that no row may break: it makes no difference which rows are there, too."""

ONE_BATCH = "the rows of one batch"
"""What rules that count, and statistics, look at unless they ask for the whole table."""

_SETS = {
    "expect_column_distinct_values_to_be_in_set": "all values of {} are among {}",
    "expect_column_distinct_values_to_contain_set": "the values of {} contain all of {}",
    "expect_column_distinct_values_to_equal_set": "the values of {} are exactly {}",
}


def expected(condition: Condition, tolerance: Tolerance | None) -> str:
    """What a rule expects of all rows that it looks at, in words that follow "expected"."""
    if isinstance(condition, RowCountBetween):
        return tolerance.words if tolerance else meaning(condition)
    return f"that {tolerance.words} break this: {meaning(condition)}" if tolerance else meaning(condition)


def looks_at(rule: Rule | TableRule) -> str:
    """Which rows a rule of a table looks at, in words that follow "looks at"."""
    condition = rule.condition if isinstance(rule, Rule) else rule.check
    if rule.scope is Scope.TABLE:
        return "all rows of the table, as they are after the batch"
    if isinstance(condition, Unique):
        return "all rows of the table; in a table of windows, only the rows of one batch"
    if rule.tolerance is not None or isinstance(condition, RowCountBetween | Expectation):
        return ONE_BATCH
    return EACH_ROW


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
        if check.minimum is None and check.maximum is None:
            return "a number of rows"
        one = (check.maximum if check.minimum is None else check.minimum) == 1 and check.maximum in {None, 1}
        return f"{_from_to(check.minimum, check.maximum)} row{'' if one else 's'}"
    given = dict(check.arguments)
    if check.kind in _SETS:
        values = given["value_set"]
        return _SETS[check.kind].format(check.column, _listed(values if isinstance(values, tuple) else (values,)))
    statistic = check.kind.removeprefix("expect_column_").removesuffix("_to_be_between").replace("_", " ")
    return f"{statistic} of {check.column} {_statistic_bounds(given)}"


def _statistic_bounds(given: Mapping[str, Argument]) -> str:
    low, high = given.get("min_value"), given.get("max_value")
    least = [f"{'more than' if given.get('strict_min') else 'at least'} {low}"] if low is not None else []
    most = [f"{'less than' if given.get('strict_max') else 'at most'} {high}"] if high is not None else []
    return " and ".join(least + most)


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
