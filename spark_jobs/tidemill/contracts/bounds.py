"""Bounds of integers and decimals as values that the column itself can hold."""

from __future__ import annotations

from decimal import Decimal as Exact
from enum import Enum, auto

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.contracts.units import CONTEXT, limits_of, scale_of, units_of
from tidemill.core.contract.schema import DataType, Decimal


class Beyond(Enum):
    """What a bound means that lies beyond all values of a column: it breaks for every value, or for none."""

    EVERY = auto()
    NONE = auto()


EVERY, NONE = Beyond.EVERY, Beyond.NONE


def exact_bound(bound: int | float, of: DataType, *, lower: bool, exclusive: bool) -> pa.Scalar | Beyond:
    """The least value (with `lower`), or the greatest, of a column of integers or decimals that keeps to the bound.

    For example, the least integer above 0.5 is 1, and the greatest below 3 is 2.
    """
    units = units_of(bound, of, lower=lower, exclusive=exclusive)
    lowest, highest = limits_of(of)
    if not lowest <= units <= highest:
        return EVERY if (units > highest) is lower else NONE
    if isinstance(of, Decimal):
        scale = scale_of(of)
        return pa.scalar(Exact(units).scaleb(-scale, CONTEXT), pa.decimal128(of.precision, scale))
    return pa.scalar(units, pa.int64())
