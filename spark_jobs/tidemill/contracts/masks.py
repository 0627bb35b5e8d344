"""Which rows break a check: a mask over Arrow columns, true where a row breaks it.

A null breaks only NotNull. NaN breaks every bound and every comparison. Bounds stay exact: they become the nearest
value that the column can hold, and never a float.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.contracts.bounds import EVERY, NONE, exact_bound
from tidemill.contracts.inner_masks import beyond_moment, missing_inside, no_multiple, repeats_inside
from tidemill.contracts.values import as_value
from tidemill.core.contract.contract import (
    Between,
    Check,
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
from tidemill.core.contract.schema import DataType, Scalar
from tidemill.tables.keys import one_zero
from tidemill.tables.matching import unmatched

Rows: TypeAlias = "pa.Table | pa.RecordBatch"
Types = Mapping[str, DataType]

_WIDEST = pa.decimal256(76, 38)
_COMPARED = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal, "=": pc.equal}
_BEYOND = {"minimum": pc.less, "maximum": pc.greater}


def is_of_rows(check: Check) -> bool:
    """Whether the check has a mask: it looks at one row, and is not SQL."""
    return not isinstance(check, Unique | RowCountBetween | Holds | Expectation)


def broken(check: Check, rows: Rows, types: Types) -> Any:
    """The mask of the rows that break a check of rows, without nulls. `types` are those of the contract's columns.

    Raises:
        pa.ArrowException: a column has another type than the contract says.
    """
    return pc.fill_null(_broken(check, rows, types), False)


def _broken(check: Check, rows: Rows, types: Types) -> Any:
    match check:
        case NotNull(column=column):
            return pc.is_null(rows.column(column))
        case Between(column=column):
            return _outside(rows.column(column), check, types[column])
        case OneOf(column=column, values=values):
            return _not_among(rows.column(column), values, types[column])
        case Matches(column=column, pattern=pattern):
            return unmatched(rows.column(column), pattern)
        case LengthBetween(column=column, minimum=low, maximum=high):
            return _sized(pc.utf8_length(rows.column(column)), low, high)
        case Compare(left=left, operator=sign, right=right):
            return _not_compared(rows.column(left), sign, rows.column(right))
        case Unique() | RowCountBetween() | Holds() | Expectation():
            raise ValueError(f"not a check that has a mask: {check}")
        case _:
            return _of_parts(check, rows.column(check.column), types)


def _of_parts(check: RowCheck, values: Any, types: Types) -> Any:
    match check:
        case Bounded(operator=sign, bound=bound):
            return beyond_moment(values, sign, bound)
        case MultipleOf(factor=factor):
            return no_multiple(values, factor)
        case NoneOf(column=column, values=refused, null_too=null_too):
            among = pc.and_(pc.is_valid(values), pc.invert(_not_among(values, refused, types[column])))
            return pc.or_(among, pc.is_null(values)) if null_too else among
        case ItemsBetween(minimum=low, maximum=high):
            return _sized(pc.list_value_length(values), low, high)
        case ItemsDistinct():
            return repeats_inside(values)
        case NotNullInside(path=path):
            return missing_inside(values, path)


def _any(masks: Sequence[Any], values: Any) -> Any:
    return reduce(pc.or_, masks, _never(values))


def _never(values: Any) -> Any:
    return pc.and_(pc.is_valid(values), False)


def _sized(size: Any, least: int | None, most: int | None) -> Any:
    few = [] if least is None else [pc.less(size, least)]
    return _any([*few, *([] if most is None else [pc.greater(size, most)])], size)


def _outside(values: Any, check: Between, of: DataType) -> Any:
    masks = [pc.is_nan(values)] if of is Scalar.DOUBLE else []
    for side, bound, exclusive in (
        ("minimum", check.minimum, check.exclusive_minimum),
        ("maximum", check.maximum, check.exclusive_maximum),
    ):
        if bound is not None:
            masks.append(_beyond(values, side, bound, exclusive=exclusive, of=of))
    return _any(masks, values)


def _beyond(values: Any, side: str, bound: int | float, *, exclusive: bool, of: DataType) -> Any:
    """The values below a minimum, or above a maximum."""
    if of is Scalar.DOUBLE:
        compare: Callable[..., Any] = _BEYOND[side]
        outside = compare(values, float(bound))
        return pc.or_(outside, pc.equal(values, float(bound))) if exclusive else outside
    limit = exact_bound(bound, of, lower=side == "minimum", exclusive=exclusive)
    if limit is NONE:
        return _never(values)
    return pc.is_valid(values) if limit is EVERY else _BEYOND[side](values, limit)


def _not_among(values: Any, allowed: Sequence[Any], of: DataType) -> Any:
    known = []
    for value in allowed:
        try:
            known.append(pa.scalar(as_value(value, of), values.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            # The column cannot hold this value, so no row has it.
            continue
    listed = one_zero(pa.array([k.as_py() for k in known], values.type))
    return pc.and_(pc.is_valid(values), pc.invert(pc.is_in(one_zero(values), listed, skip_nulls=True)))


def _not_compared(left: Any, sign: str, right: Any) -> Any:
    if pa.types.is_floating(left.type):
        wrong = pc.or_(pc.is_nan(left), pc.is_nan(right))
        return pc.or_(pc.invert(_COMPARED[sign](left, right)), wrong)
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        left, right = (_widest(side) for side in (left, right))
    return pc.invert(_COMPARED[sign](left, right))


def _widest(values: Any) -> Any:
    """Integers and decimals as decimals in which all of them can be compared."""
    return (values.cast(pa.decimal128(19, 0)) if pa.types.is_integer(values.type) else values).cast(_WIDEST)
