"""Conditions in one way of writing, so that two that say the same are equal."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from tidemill.contracts.conditions import Condition, Predicate
from tidemill.contracts.units import limits_of, units_of
from tidemill.core.contract.contract import Between, Holds, LengthBetween, Matches
from tidemill.core.contract.row_checks import Bounded, ItemsBetween
from tidemill.core.contract.schema import DataType, Decimal, Scalar
from tidemill.core.identity.written import words

_EVERY_TEXT = ("[\\s\\S]*", "[\\S\\s]*", "[\\d\\D]*", "[\\w\\W]*", "(?s:.*)", "(?s:.)*")
"""Patterns that every text matches. `.*` is none of them: a dot is no line break."""


def by_words(condition: Condition) -> Condition:
    """The condition with SQL by its words: blanks and the case of keywords say nothing."""
    match condition:
        case Predicate(sql=sql):
            return replace(condition, sql=repr(tuple(words(sql))))
        case Holds(columns=columns, predicate=sql):
            return replace(condition, columns=tuple(sorted(columns)), predicate=repr(tuple(words(sql))))
        case _:
            return condition


def by_values(condition: Condition, types: Mapping[str, DataType]) -> Condition:
    """The condition with included bounds, where its column has integers, decimals or days: above 4 is at least 5.

    Bounds of integers and decimals are counted in the smallest unit of the column, and those that every value keeps to
    are left out.
    """
    match condition:
        case Between(column=column) if _has_units(of := types.get(column)):
            assert of is not None
            return _in_units(condition, of)
        case LengthBetween(minimum=least) | ItemsBetween(minimum=least) if least is not None and least <= 0:
            return replace(condition, minimum=None)
        case Bounded(column=column, operator=">" | "<" as sign) if types.get(column) is Scalar.DATE:
            # The first and the last day that there are have no neighbour.
            with suppress(OverflowError):
                day = date.fromisoformat(condition.bound) + timedelta(days=1 if sign == ">" else -1)
                return replace(condition, operator=f"{sign}=", bound=day.isoformat())
    return condition


def always_holds(condition: Condition, types: Mapping[str, DataType]) -> bool:
    """Whether every value of the types of its columns keeps to the condition."""
    match by_values(condition, types):
        case Between(minimum=None, maximum=None) | LengthBetween(minimum=None, maximum=None):
            return True
        case ItemsBetween(minimum=None, maximum=None):
            return True
        case Matches(pattern=pattern):
            return pattern in _EVERY_TEXT
        case _:
            return False


def _has_units(of: DataType | None) -> bool:
    return isinstance(of, Decimal) or of in (Scalar.INTEGER, Scalar.LONG)


def _in_units(condition: Between, of: DataType) -> Between:
    low, high = condition.minimum, condition.maximum
    lowest, highest = limits_of(of)
    if low is not None:
        least = units_of(low, of, lower=True, exclusive=condition.exclusive_minimum)
        low = None if least <= lowest else least
    if high is not None:
        most = units_of(high, of, lower=False, exclusive=condition.exclusive_maximum)
        high = None if most >= highest else most
    return Between(column=condition.column, minimum=low, maximum=high)
