"""Columns of text read as typed columns, for formats that write every value as text.

All formats spell values in the same way: integers are digits with an optional sign; numbers may have a point and an
exponent, but are never NaN or infinite; true and false may be in any case; `TimeUnit` says how dates and times look.
There are no blanks around a value. A value that a type cannot hold exactly is bad, except that doubles are rounded.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar
from tidemill.engine.read.decode import instants
from tidemill.engine.read.decode.options import TimeUnit
from tidemill.tables.arrow_types import arrow_type

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DIGITS = 38

_EXACT = decimal.Context(prec=_DIGITS, traps=[decimal.Inexact, decimal.InvalidOperation])
_INSTANT = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_FLOOR, traps=[decimal.InvalidOperation])


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A typed column. Where `bad` is true, the text was not a value of the type, and the column is null."""

    array: pa.Array
    bad: npt.NDArray[np.bool_]


def typed(texts: pa.StringArray, data_type: Scalar | Decimal, unit: TimeUnit = TimeUnit.ISO) -> Column:
    """Read each text as a value of the type; nulls stay null.

    Raises:
        ValueError: the type is binary, which is not written as text.
    """
    if not len(texts):
        return Column(array=pa.nulls(0, arrow_type(data_type)), bad=np.zeros(0, dtype=np.bool_))
    match data_type:
        case Scalar.STRING:
            return Column(array=texts, bad=np.zeros(len(texts), dtype=np.bool_))
        case Scalar.INTEGER | Scalar.LONG:
            return _integers(texts, 32 if data_type is Scalar.INTEGER else 64)
        case Scalar.DOUBLE:
            return _doubles(texts)
        case Scalar.BOOLEAN:
            return _booleans(texts)
        case Scalar.DATE:
            days, good = instants.iso_days(texts)
            return _numbered(texts, days.astype(np.int32), good, pa.date32())
        case Scalar.TIMESTAMP:
            return _instants(texts, unit)
        case Decimal(precision, scale):
            return _decimals(texts, precision, scale)
        case Scalar.BINARY:
            raise ValueError("binary is not written as text")
        case _:
            assert_never(data_type)


def writable(data_type: DataType) -> bool:
    """Whether a value of the type can be written as one text."""
    match data_type:
        case Array() | Object() | Scalar.BINARY:
            return False
        case _:
            return True


def log_times(texts: pa.StringArray) -> Column:
    """Times as access logs write them, `23/Mar/2014:15:07:00 -0700`."""
    micros, good = instants.log_instants(texts)
    return _numbered(texts, micros, good, pa.timestamp("us", "UTC"))


def _integers(texts: pa.StringArray, bits: int) -> Column:
    cast = as_series(texts).cast(pl.Int32 if bits == 32 else pl.Int64, strict=False).to_arrow()
    return Column(array=cast, bad=_lost(texts, cast))


def _doubles(texts: pa.StringArray) -> Column:
    cast = as_series(texts).cast(pl.Float64, strict=False).to_arrow()
    finite = pc.if_else(pc.is_finite(cast), cast, pa.scalar(None, pa.float64()))
    return Column(array=finite, bad=_lost(texts, finite))


def _booleans(texts: pa.StringArray) -> Column:
    lower = pc.ascii_lower(texts)
    known = pc.is_in(lower, value_set=pa.array(["true", "false"]))
    array = pc.if_else(known, pc.equal(lower, "true"), pa.scalar(None, pa.bool_()))
    return Column(array=array, bad=_lost(texts, array))


def _instants(texts: pa.StringArray, unit: TimeUnit) -> Column:
    if unit is TimeUnit.ISO:
        micros, good = instants.iso_instants(texts)
        return _numbered(texts, micros, good, pa.timestamp("us", "UTC"))
    column = _exact(texts, pa.decimal128(38, unit.digits), lambda text: _floored(text, unit.digits))
    words = np.frombuffer(column.array.buffers()[1], dtype=np.int64).reshape(-1, 2)
    low, high = words[column.array.offset :][: len(texts)].T
    good = np.asarray(column.array.is_valid()) & (high == low >> 63)
    good &= (low >= instants.EARLIEST) & (low <= instants.LATEST)
    return _numbered(texts, low, good, pa.timestamp("us", "UTC"))


def _decimals(texts: pa.StringArray, precision: int, scale: int) -> Column:
    return _exact(texts, pa.decimal128(precision, scale), lambda text: _fitted(text, precision, scale))


def _exact(texts: pa.StringArray, arrow: pa.DataType, read: Callable[[str], decimal.Decimal | None]) -> Column:
    """Cast plain texts with Arrow, and read the others one by one with `read`, which gives None for bad ones.

    The cast must only see plain texts: it overflows without an error if digits and scale exceed 128 bits, or by
    exponents.
    """
    plain = pc.fill_null(pc.match_substring_regex(texts, _plain(arrow)), False)
    array = pc.if_else(plain, texts, pa.scalar(None, pa.string())).cast(arrow)
    others = pc.and_(pc.invert(plain), texts.is_valid())
    if pc.any(others).as_py():
        values = [read(text) if NUMBER.fullmatch(text) else None for text in texts.filter(others).to_pylist()]
        array = pc.replace_with_mask(array, others, pa.array(values, arrow))
    return Column(array=array, bad=_lost(texts, array))


def _plain(arrow: pa.DataType) -> str:
    """A pattern for numbers without an exponent that have no more digits before and after the point than fit."""
    before, after = arrow.precision - arrow.scale, arrow.scale
    forms = [rf"[0-9]{{1,{before}}}(\.[0-9]{{0,{after}}})?"] if before else []
    forms += [rf"\.[0-9]{{1,{after}}}"] if after else []
    return f"^[+-]?0?({'|'.join(forms)})$"


def _fitted(text: str, precision: int, scale: int) -> decimal.Decimal | None:
    try:
        value = _EXACT.quantize(decimal.Decimal(text), decimal.Decimal(1).scaleb(-scale))
    except decimal.DecimalException:
        return None
    return value if value.adjusted() < precision - scale else None


def _floored(text: str, scale: int) -> decimal.Decimal | None:
    try:
        return _INSTANT.quantize(decimal.Decimal(text), decimal.Decimal(1).scaleb(-scale))
    except decimal.DecimalException:
        return None


def as_series(texts: pa.StringArray) -> pl.Series:
    """The same texts for Polars, which copies nothing."""
    series = pl.from_arrow(texts)
    assert isinstance(series, pl.Series)
    return series


def as_texts(series: pl.Series) -> pa.StringArray:
    """Texts of Polars for Arrow."""
    return series.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _numbered(
    texts: pa.StringArray, numbers: npt.NDArray[np.integer], good: npt.NDArray[np.bool_], arrow: pa.DataType
) -> Column:
    array = pa.array(numbers, mask=~good).view(arrow)
    return Column(array=array, bad=_lost(texts, array))


def _lost(texts: pa.StringArray, array: pa.Array) -> npt.NDArray[np.bool_]:
    if array.null_count == texts.null_count:
        return np.zeros(len(texts), dtype=np.bool_)
    lost: npt.NDArray[np.bool_] = np.asarray(array.is_null()) & np.asarray(texts.is_valid())
    return lost
