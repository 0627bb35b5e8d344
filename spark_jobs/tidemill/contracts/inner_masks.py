"""Masks of checks that look at dates, multiples, arrays, or inside of objects; as in `tidemill.contracts.masks`."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal as Exact
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.units import CONTEXT
from tidemill.core.contract.row_checks import ITEMS

_HOLDS = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def beyond_moment(values: Any, operator: str, bound: str) -> Any:
    """The dates or times for which `value operator bound` is false."""
    moment: Any = dt.date.fromisoformat(bound) if pa.types.is_date(values.type) else dt.datetime.fromisoformat(bound)
    return pc.invert(_HOLDS[operator](values, pa.scalar(moment, values.type)))


def no_multiple(values: Any, factor: int | float) -> Any:
    """The integers or decimals that are no multiple of the factor, computed exactly."""
    if pa.types.is_integer(values.type) and isinstance(factor, int) and factor < 2**31:
        whole = pc.multiply(pc.divide(values, factor), factor)
        return pc.not_equal(values, whole)
    exact = Exact(repr(factor))
    remainders = (None if v is None else _remainder(Exact(v), exact) != 0 for v in values.to_pylist())
    return pa.array(remainders, pa.bool_())


def _remainder(value: Exact, factor: Exact) -> Exact:
    """The remainder by whole numbers: a quotient of many digits is no error."""
    scale = max(0, *(-int(number.as_tuple().exponent) for number in (value, factor)))
    units, step = (int(number.scaleb(scale, CONTEXT)) for number in (value, factor))
    return Exact(units % step)


def repeats_inside(values: Any) -> Any:
    """The arrays that contain an item twice; nulls are alike, and so are the two zeros of doubles."""
    return pa.array(
        (None if v is None else len({_hashed(i) for i in v}) < len(v) for v in values.to_pylist()), pa.bool_()
    )


def _hashed(item: Any) -> Any:
    match item:
        case dict():
            return tuple((key, _hashed(value)) for key, value in item.items())
        case list():
            return tuple(map(_hashed, item))
        case float():
            return "nan" if math.isnan(item) else item
        case _:
            return item


def missing_inside(values: Any, path: tuple[str, ...]) -> Any:
    """The values with a null at the path, wherever the object around it is there."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if not path:
        return pc.is_null(array)
    step, rest = path[0], path[1:]
    if step == ITEMS:
        bad = pc.list_parent_indices(array).filter(missing_inside(pc.list_flatten(array), rest))
        return _at(len(array), bad.to_numpy())
    return pc.and_(pc.is_valid(array), missing_inside(pc.struct_field(array, step), rest))


def _at(size: int, places: Iterable[int]) -> pa.BooleanArray:
    mask = np.zeros(size, dtype=bool)
    mask[list(places)] = True
    return pa.array(mask)
