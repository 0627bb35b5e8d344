"""Refuses types with which values would be lost or changed: where streams meet, in aggregates, in published columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.fitting import Fit, fit, united
from tidemill.core.contract.schema import DataType, Decimal, Scalar, spark_type
from tidemill.core.declare import aggregates as agg
from tidemill.core.declare import bitmaps, sketches
from tidemill.core.errors import DeclarationError

_OF_NUMBERS = (agg.Sum, agg.Average, agg.Variance, agg.StdDev, sketches.Quantiles)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A type that only Spark has and no contract can name, by its name in Spark."""

    name: str


Found = Mapping[str, DataType | Foreign | None]
"""The types of columns by their names, including types that only Spark has; None where the type is not known."""


def check_united(where: str, one: Found, other: Found) -> None:
    """Refuse to merge streams if Spark would change or lose values of a column to give it one type.

    Raises:
        DeclarationError: the text names the column and both types.
    """
    for column, a in one.items():
        b = other.get(column)
        if a is None or b is None or a == b:
            continue
        if not isinstance(a, Foreign) and not isinstance(b, Foreign) and united(a, b):
            continue
        raise DeclarationError(
            f"{where} merges streams whose `{column}` is {shown_type(a)} in one and {shown_type(b)} in another: values "
            "would be lost or changed",
            fix="convert one of them before, with an expression of your own in with_columns",
        )


def check_numbers(where: str, name: str, aggregate: agg.Aggregate, of: DataType) -> None:
    """Refuse an aggregate of numbers, or of whole ones, whose expression has another type; and times as texts.

    Raises:
        DeclarationError: the expression is not such a number, or the text of its values depends on a time zone.
    """
    if isinstance(aggregate, bitmaps.Bitmap) and not _is_whole(of):
        lacks, fix = "no whole number", "convert it, for example with try_cast(... AS bigint)"
    elif isinstance(aggregate, _OF_NUMBERS) and not _is_number(of):
        lacks, fix = "no number", "convert it, for example with try_cast(... AS double)"
    elif isinstance(aggregate, bitmaps.BloomFilter) and of is Scalar.TIMESTAMP:
        lacks, fix = "has another text in each time zone", f"write unix_micros({aggregate.expression})"
    else:
        return
    kind = type(aggregate).__name__
    raise DeclarationError(
        f"{where}: `{name}` is {kind} of `{aggregate.over[0]}`, which is {spark_type(of)} and {lacks}",
        fix=fix,
    )


def check_fits(where: str, column: str, found: DataType | Foreign, contract: Contract) -> None:
    """Refuse values of a type that a contract's column cannot hold without loss.

    Raises:
        DeclarationError: the text names both types, the operator's line and the contract.
    """
    wanted = next(f.type for f in contract.fields if f.name == column)
    if not isinstance(found, Foreign) and fit(found, wanted) is not Fit.LOSES:
        return
    shown = shown_type(found)
    there = contract.source or contract.name
    raise DeclarationError(
        f"{where}: `{column}` is {shown}, but the contract says {spark_type(wanted)} for it ({there}): values would "
        "be lost or changed",
        fix=f"give `{column}` {_declared(found, shown)} in the contract. If the table is there already, `tidemill "
        "rebuild` makes it anew",
    )


def shown_type(found: DataType | Foreign) -> str:
    """A type as Spark writes it."""
    return found.name if isinstance(found, Foreign) else spark_type(found)


def _declared(found: DataType | Foreign, shown: str) -> str:
    """How a contract says this type."""
    if isinstance(found, Decimal):
        return f"`logicalType: number` and `physicalType: {shown}`"
    if found is Scalar.BINARY:
        return "`logicalType: string` and `physicalType: binary`"
    words = {Scalar.LONG: "integer", Scalar.DOUBLE: "number"}
    named = words.get(found) if isinstance(found, Scalar) else None
    return f"`logicalType: {named}`" if named else f"the type {shown}"


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, Decimal) or data_type in (Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE)


def _is_whole(data_type: DataType) -> bool:
    return data_type in (Scalar.INTEGER, Scalar.LONG) or (isinstance(data_type, Decimal) and data_type.scale == 0)
