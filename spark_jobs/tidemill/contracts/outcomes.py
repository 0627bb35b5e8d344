"""What an audit finds for one rule, and how it is shown."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.contract import Check, Compare, Holds, RowCountBetween, Unique
from tidemill.core.contract.tolerance import Tolerance
from tidemill.core.contract.verdict import Json
from tidemill.core.errors import EngineError
from tidemill.core.json_text import json_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found for one rule: a few words about a broken rule, and some of the rows that broke it."""

    passed: bool
    observed: str = ""
    rows: pa.Table | None = None


def of_count(check: RowCountBetween, count: int, tolerance: Tolerance | None) -> Found:
    """What a rule about the number of rows makes of this number; a tolerance compares it, too."""
    if tolerance is not None and not tolerance.allows(count, count):
        return Found(passed=False, observed=_rows(count))
    few, many = check.minimum is not None and count < check.minimum, check.maximum is not None and count > check.maximum
    return Found(passed=False, observed=_rows(count)) if few or many else Found(passed=True)


def of_rows(bad: int, count: int, tolerance: Tolerance | None, some: Callable[[], pa.Table]) -> Found:
    """What a rule makes of so many bad rows of all; `some` gives a few of them."""
    if not bad if tolerance is None else tolerance.allows(bad, count):
        return Found(passed=True)
    return Found(passed=False, observed=f"{bad} of {_rows(count)}", rows=some() if bad else None)


def _rows(count: int) -> str:
    return f"{count} row{'' if count == 1 else 's'}"


def columns_of(check: Check) -> tuple[str, ...]:
    """The columns that a check reads."""
    match check:
        case RowCountBetween():
            return ()
        case Unique(columns=columns) | Holds(columns=columns):
            return columns
        case Compare(left=left, right=right):
            return (left, right)
        case _:
            return (check.column,)


@contextmanager
def named(rule: str) -> Iterator[None]:
    """Name the rule in an error of Arrow: rows have another type than the contract says."""
    try:
        yield
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise EngineError(f"rule `{rule}` could not be checked: {error}") from error


def printable(rows: pa.Table | None) -> tuple[Mapping[str, Json], ...]:
    """Rows as mappings of column to a value that JSON can hold."""
    if rows is None:
        return ()
    return tuple({name: _json(value) for name, value in row.items()} for row in rows.to_pylist())


def _json(value: Any) -> Json:
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case dt.datetime():
            return (value.astimezone(dt.UTC) if value.tzinfo else value).isoformat().replace("+00:00", "Z")
        case _:
            return json_text(value)
