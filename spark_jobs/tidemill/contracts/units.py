"""Bounds of integers and decimals, counted in the smallest unit of a column."""

from __future__ import annotations

import decimal
from decimal import Decimal as Exact

from tidemill.core.contract.schema import DataType, Decimal, Scalar

_HIGHEST = {Scalar.INTEGER: 2**31 - 1, Scalar.LONG: 2**63 - 1}
_LOWEST = {Scalar.INTEGER: -(2**31), Scalar.LONG: -(2**63)}
CONTEXT = decimal.Context(prec=1_000)
"""Exact for every bound that a contract can have."""


def scale_of(of: DataType) -> int:
    """How many digits the column has after the point."""
    return of.scale if isinstance(of, Decimal) else 0


def units_of(bound: int | float, of: DataType, *, lower: bool, exclusive: bool) -> int:
    """The least number of units (with `lower`), or the greatest, that keeps to a bound.

    For example, the least integer above 0.5 is 1, and the greatest below 3 is 2.
    """
    scaled = Exact(repr(bound)).scaleb(scale_of(of), CONTEXT)
    # An excluded bound is passed by going to the whole number on its other side, and one further.
    rounding = decimal.ROUND_CEILING if lower is not exclusive else decimal.ROUND_FLOOR
    return int(scaled.to_integral_value(rounding, CONTEXT)) + (exclusive and (1 if lower else -1))


def limits_of(of: DataType) -> tuple[int, int]:
    """The least and the greatest number of units that a column of integers or decimals can hold."""
    if isinstance(of, Decimal):
        return 1 - 10**of.precision, 10**of.precision - 1
    assert isinstance(of, Scalar)
    return _LOWEST[of], _HIGHEST[of]
