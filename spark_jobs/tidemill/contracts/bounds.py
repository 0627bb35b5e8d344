"""Bounds of integers and decimals as values that the column itself can hold."""

from __future__ import annotations

import decimal
from decimal import Decimal as Exact
from enum import Enum, auto

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.schema import DataType, Decimal, Scalar


class Beyond(Enum):
    """What a bound means that lies beyond all values of a column: it breaks for every value, or for none."""

    EVERY = auto()
    NONE = auto()


EVERY, NONE = Beyond.EVERY, Beyond.NONE

_HIGHEST = {Scalar.INTEGER: 2**31 - 1, Scalar.LONG: 2**63 - 1}
_LOWEST = {Scalar.INTEGER: -(2**31), Scalar.LONG: -(2**63)}
_CONTEXT = decimal.Context(prec=1_000)


def exact_bound(bound: int | float, of: DataType, *, lower: bool, exclusive: bool) -> pa.Scalar | Beyond:
    """The least value (with `lower`), or the greatest, of a column of integers or decimals that keeps to the bound.

    For example, the least integer above 0.5 is 1, and the greatest below 3 is 2.
    """
    scale = of.scale if isinstance(of, Decimal) else 0
    scaled = Exact(repr(bound)).scaleb(scale, _CONTEXT)
    # An excluded bound is passed by going to the whole number on its other side, and one further.
    rounding = decimal.ROUND_CEILING if lower is not exclusive else decimal.ROUND_FLOOR
    units = int(scaled.to_integral_value(rounding, _CONTEXT)) + (exclusive and (1 if lower else -1))
    lowest, highest = _limits(of)
    if not lowest <= units <= highest:
        return EVERY if (units > highest) is lower else NONE
    if isinstance(of, Decimal):
        return pa.scalar(Exact(units).scaleb(-scale, _CONTEXT), pa.decimal128(of.precision, scale))
    return pa.scalar(units, pa.int64())


def _limits(of: DataType) -> tuple[int, int]:
    if isinstance(of, Decimal):
        return 1 - 10**of.precision, 10**of.precision - 1
    assert isinstance(of, Scalar)
    return _LOWEST[of], _HIGHEST[of]
