"""Whether values of one type can stand in a column of another without losing anything."""

from __future__ import annotations

from enum import StrEnum

from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar

_DIGITS = {Scalar.INTEGER: 10, Scalar.LONG: 19}
"""How many digits an integer has at most."""

_MOST_DIGITS = 38

_WIDER = {
    (Scalar.INTEGER, Scalar.LONG),
    (Scalar.INTEGER, Scalar.DOUBLE),
    (Scalar.DATE, Scalar.TIMESTAMP),
}
"""Every value of the first is one of the second."""


class Fit(StrEnum):
    """How values of one type stand in a column of another.

    FITS: each does, unchanged. SOME: each that fits does unchanged, and whether one fits shows only when it is there.
    LOSES: some would be changed, or be none at all.
    """

    FITS = "fits"
    SOME = "some"
    LOSES = "loses"


def fit(found: DataType, wanted: DataType) -> Fit:
    """How values of type `found` stand in a column of type `wanted`.

    Decimals may have fewer digits before the point, as Spark gives every sum ten more than it needs; never fewer
    behind it. Everything else that is narrower, and every text of something that is none, is for the user to write.
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
            # Spark casts fields by their place: those of other names would change places in silence.
            if [f.name.lower() for f in fields] != [f.name.lower() for f in others]:
                return Fit.LOSES
            return _inside([fit(f.type, o.type) for f, o in zip(fields, others, strict=True)])
        case _:
            return Fit.LOSES


def united(one: DataType, other: DataType) -> bool:
    """Whether columns of these types can be merged into one that holds every value of both, unchanged."""
    a, b = _digits(one), _digits(other)
    if a is not None and b is not None and Decimal in (type(one), type(other)):
        # Spark takes the most digits on either side of the point.
        return max(a[0], b[0]) + max(a[1], b[1]) <= _MOST_DIGITS
    return Fit.FITS in (fit(one, other), fit(other, one))


def _digits(of: DataType) -> tuple[int, int] | None:
    """How many digits a number has before and behind the point; None for others."""
    if isinstance(of, Decimal):
        return of.precision - of.scale, of.scale
    return (_DIGITS[of], 0) if isinstance(of, Scalar) and of in _DIGITS else None


def _of_digits(before: int, behind: int, wanted: Decimal) -> Fit:
    if behind > wanted.scale:
        return Fit.LOSES
    return Fit.FITS if before <= wanted.precision - wanted.scale else Fit.SOME


def _inside(fits: list[Fit]) -> Fit:
    """Of values inside of others: one that does not fit there could not be told."""
    return Fit.FITS if all(each is Fit.FITS for each in fits) else Fit.LOSES
