"""Converts values of a document to values of a column."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal as Exact

from tidemill.contracts.document import Node
from tidemill.contracts.units import CONTEXT
from tidemill.core.contract.long_number import LongNumber, exact_of
from tidemill.core.contract.schema import DataType, Decimal, Scalar

_DIGITS = 38
_INTEGERS = {Scalar.INTEGER: 2**31, Scalar.LONG: 2**63}
_DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_LONGEST_EXACT = 2**53

EXACT = tuple(f"expect_column_{name}_to_be_between" for name in ("max", "mean", "min", "sum"))
"""The statistics that are computed without a rounding for columns of integers and decimals."""

FEWER = "write the number with fewer digits, or give the column physicalType: decimal(p,s)"
"""What to do about a number that a double rounds."""


def bound(node: Node, data_type: DataType) -> int | float | None:
    """Return the bound as a number for columns of the type; None if it is not such a number. 1.0 becomes 1."""
    number = node.value
    if not isinstance(number, int | float) or isinstance(number, bool):
        return None
    if not (_is_finite(number) if data_type is Scalar.DOUBLE else is_exact(number)):
        return None
    return _plainest(number, data_type)


def _plainest(number: int | float, data_type: DataType) -> int | float:
    if data_type is not Scalar.DOUBLE and isinstance(number, float):
        # 1e23 is a 1 with 23 zeros here, though the nearest float is another number.
        exact = exact_of(number)
        whole = exact.to_integral_value(context=CONTEXT)
        return int(whole) if whole == exact else number
    number = float(number) if isinstance(number, LongNumber) else number
    return int(number) if isinstance(number, float) and number.is_integer() and abs(number) < _LONGEST_EXACT else number


def is_number_type(data_type: DataType) -> bool:
    """Whether columns of the type hold numbers."""
    return isinstance(data_type, Decimal) or data_type in (*_INTEGERS, Scalar.DOUBLE)


def is_computed_exactly(kind: str, data_type: DataType | None) -> bool:
    """Whether a statistic (an expectation's kind) of a column of this type is computed without a rounding."""
    return kind in EXACT and (isinstance(data_type, Decimal) or data_type in _INTEGERS)


def is_exact(number: int | float) -> bool:
    """Whether an exact decimal in Spark, of at most 38 digits, can hold the number."""
    _, digits, exponent = Exact(repr(number)).as_tuple()
    if not isinstance(exponent, int):
        return False
    return max(len(digits) + exponent, 0) + max(-exponent, 0) <= _DIGITS


def held(node: Node, data_type: DataType) -> Node:
    """The node with the value that a column of the type can hold: doubles have no more digits than a float."""
    value = node.value
    return Node(float(value), node.line) if isinstance(value, LongNumber) and data_type is Scalar.DOUBLE else node


def rounded(node: Node, data_type: DataType) -> str:
    """What a column of doubles makes of a number with more digits; empty if it is kept as it is written."""
    value = node.value
    if data_type is not Scalar.DOUBLE or not (isinstance(value, LongNumber) or type(value) is int):
        return ""
    if not _is_finite(value) or exact_of(value) == Exact(float(value)):
        return ""
    return f"{value} has more digits than a double keeps: it is compared as {float(value)!r}"


def fits(node: Node, data_type: DataType) -> bool:
    """Whether an allowed value of a contract is possible in a column of the type."""
    value = node.value
    match data_type:
        case Scalar.STRING:
            return isinstance(value, str)
        case Scalar.BOOLEAN:
            return isinstance(value, bool)
        case Scalar.INTEGER | Scalar.LONG:
            limit = _INTEGERS[data_type]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case Scalar.DOUBLE:
            return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)
        case Decimal():
            return isinstance(value, int | float) and not isinstance(value, bool) and is_exact(value)
        case Scalar.DATE:
            return _is_date(value)
        case _:
            return False


def advice(data_type: DataType) -> str:
    """What to do about an allowed value that is none of the type."""
    if isinstance(data_type, Scalar | Decimal) and data_type not in (Scalar.TIMESTAMP, Scalar.BINARY):
        return "mind the quotes"
    return "remove the list: columns of texts, numbers, days and truths can have one; times can have bounds"


def _is_finite(number: int | float) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def as_value(value: str | int | float | bool, data_type: DataType) -> str | int | float | bool | Exact | dt.date:
    """Return a value of a contract as Python holds values of such a column. 0.1 as a decimal is exactly 0.1."""
    match data_type:
        case Decimal():
            return Exact(repr(value))
        case Scalar.INTEGER | Scalar.LONG if isinstance(value, float):
            return Exact(repr(value))
        case Scalar.DATE:
            return dt.date.fromisoformat(str(value))
        case _:
            return value


def _is_date(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(_DATE.fullmatch(value)) and bool(dt.date.fromisoformat(value))
    except ValueError:
        return False
