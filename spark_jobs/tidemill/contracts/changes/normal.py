"""Conditions in one way of writing, so that two that say the same are equal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta

from tidemill.contracts.conditions import Condition, Predicate
from tidemill.core.contract.contract import Between, Holds
from tidemill.core.contract.row_checks import Bounded
from tidemill.core.contract.schema import DataType, Scalar
from tidemill.core.identity.written import words

_WHOLE = (Scalar.INTEGER, Scalar.LONG)


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
    """The condition with included bounds, where its column has whole numbers or days: above 4 is at least 5."""
    match condition:
        case Between(column=column) if types.get(column) in _WHOLE:
            low, high = condition.minimum, condition.maximum
            if low is not None:
                low = math.floor(low) + 1 if condition.exclusive_minimum else math.ceil(low)
            if high is not None:
                high = math.ceil(high) - 1 if condition.exclusive_maximum else math.floor(high)
            return Between(column=column, minimum=low, maximum=high)
        case Bounded(column=column, operator=">" | "<" as sign) if types.get(column) is Scalar.DATE:
            # The first and the last day that there are have no neighbour.
            with suppress(OverflowError):
                day = date.fromisoformat(condition.bound) + timedelta(days=1 if sign == ">" else -1)
                return replace(condition, operator=f"{sign}=", bound=day.isoformat())
    return condition
