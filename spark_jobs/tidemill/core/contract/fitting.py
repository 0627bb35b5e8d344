"""Whether a column of one type can hold the values of another type without loss."""

from __future__ import annotations

from enum import StrEnum

from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar

_DIGITS = {Scalar.INTEGER: 10, Scalar.LONG: 19}
"""The most digits that an integer has."""

_MOST_DIGITS = 38

_WIDER = {
    (Scalar.INTEGER, Scalar.LONG),
    (Scalar.INTEGER, Scalar.DOUBLE),
    (Scalar.DATE, Scalar.TIMESTAMP),
}
"""Pairs of types: the second type holds every value of the first."""


class Fit(StrEnum):
    """How a column of one type holds the values of another type.

    FITS: it holds every value unchanged. SOME: it holds a value unchanged or not at all; that shows only when the value
    is there. LOSES: it would change values or lose them.
    """

    FITS = "fits"
    SOME = "some"
    LOSES = "loses"


def fit(found: DataType, wanted: DataType) -> Fit:
    """How a column of type `wanted` holds values of type `found`.

    A wanted decimal may have fewer digits before the point, because Spark gives every sum ten more than it needs; it
    never may have fewer behind the point. Users must write all other narrowing casts, and casts from or to text.
    """
    match found, wanted:
        case _ if found == wanted:
            return Fit.FITS
        case Scalar(), Scalar():
            return Fit.FITS if (found, wanted) in _WIDER else Fit.LOSES
        case Decimal(), Decimal():
            return _of_digits(found.precision - found.scale, found.scale, wanted)
        case ((Scalar.INTEGER | Scalar.LONG), Decimal()):
            return _of_digits(_DIGITS[found], 0, wanted)
        case Array(item), Array(other):
            return _inside([fit(item, other)])
        case Object(fields), Object(others):
            # Spark casts fields by position: fields of other names would take each other's values, without an error.
            if [f.name.lower() for f in fields] != [f.name.lower() for f in others]:
                return Fit.LOSES
            return _inside([fit(f.type, o.type) for f, o in zip(fields, others, strict=True)])
        case _:
            return Fit.LOSES


def united(one: DataType, other: DataType) -> bool:
    """Whether one column can hold every value of both types unchanged."""
    a, b = _digits(one), _digits(other)
    if a is not None and b is not None and Decimal in (type(one), type(other)):
        # Spark takes the most digits on either side of the point.
        return max(a[0], b[0]) + max(a[1], b[1]) <= _MOST_DIGITS
    return Fit.FITS in (fit(one, other), fit(other, one))


def _digits(of: DataType) -> tuple[int, int] | None:
    """The most digits before and behind the point of a number; None for types that are not exact numbers."""
    if isinstance(of, Decimal):
        return of.precision - of.scale, of.scale
    return (_DIGITS[of], 0) if isinstance(of, Scalar) and of in _DIGITS else None


def _of_digits(before: int, behind: int, wanted: Decimal) -> Fit:
    if behind > wanted.scale:
        return Fit.LOSES
    return Fit.FITS if before <= wanted.precision - wanted.scale else Fit.SOME


def _inside(fits: list[Fit]) -> Fit:
    """How values inside of others fit: an inner value that does not fit could not be reported, so SOME is LOSES."""
    return Fit.FITS if all(each is Fit.FITS for each in fits) else Fit.LOSES
