"""Values of translated expressions: what DuckDB's SQL says, and the type that it has there and in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from tidemill.core.contract.schema import DataType, Decimal, Scalar, spark_type

DIGITS = 38
"""The most digits of a decimal, in Spark and in DuckDB."""

_DUCKDB = {
    Scalar.STRING: "VARCHAR",
    Scalar.BINARY: "BLOB",
    Scalar.BOOLEAN: "BOOLEAN",
    Scalar.INTEGER: "INTEGER",
    Scalar.LONG: "BIGINT",
    Scalar.DOUBLE: "DOUBLE",
    Scalar.DATE: "DATE",
    Scalar.TIMESTAMP: "TIMESTAMPTZ",
}
_WRITTEN = {
    exp.DType.TEXT: Scalar.STRING,
    exp.DType.BINARY: Scalar.BINARY,
    exp.DType.BOOLEAN: Scalar.BOOLEAN,
    exp.DType.INT: Scalar.INTEGER,
    exp.DType.BIGINT: Scalar.LONG,
    exp.DType.DOUBLE: Scalar.DOUBLE,
    exp.DType.DATE: Scalar.DATE,
    exp.DType.TIMESTAMPTZ: Scalar.TIMESTAMP,
}
DIGITS_OF = {Scalar.INTEGER: 10, Scalar.LONG: 20}
"""The digits of the decimal that Spark takes an integer for."""


class Untranslatable(Exception):
    """A statement uses something that is not known to give the same in DuckDB as in Spark."""


@dataclass(frozen=True, slots=True)
class Value:
    """An expression in DuckDB's SQL and its type; the type of `NULL` is None.

    The text is empty for a column that DuckDB does not get, because of its type. `written` is a written number.
    """

    text: str
    type: DataType | None
    written: str = ""


Of = Callable[[exp.Expr], Value]
"""Translates a part of an expression."""


def refuse(node: exp.Expr) -> NoReturn:
    """Refuse an expression that has no rule."""
    raise Untranslatable(node.sql("spark")[:80])


def duckdb_type(of: DataType) -> str:
    """The type as DuckDB's SQL writes it.

    Raises:
        Untranslatable: its values, or their order, may differ from Spark's.
    """
    if isinstance(of, Decimal):
        return f"DECIMAL({of.precision},{of.scale})"
    if not isinstance(of, Scalar) or of not in _DUCKDB:
        raise Untranslatable(f"values of type {spark_type(of)}")
    return _DUCKDB[of]


def type_of(written: exp.DataType) -> DataType:
    """The type that a cast names.

    Raises:
        Untranslatable: its values, or their order, may differ from Spark's.
    """
    more = {name for name, part in written.args.items() if part} - {"this"}
    if written.this == exp.DType.DECIMAL and more == {"expressions"}:
        digits = [int(p.name) for p in written.expressions]
        return Decimal(*digits) if digits[0] <= DIGITS else _refuse(written)
    return _WRITTEN[written.this] if written.this in _WRITTEN and not more else _refuse(written)


def _refuse(written: exp.DataType) -> NoReturn:
    raise Untranslatable(f"values of type {written.sql('spark').lower()}")


def is_whole(value: Value) -> bool:
    """Whether the value is an integer."""
    return value.type in DIGITS_OF


def cast(value: Value, to: DataType, *, fails: bool = False) -> Value:
    """The value in another type: where it does not fit, null, or an error if the cast `fails`.

    Raises:
        Untranslatable: the two engines may write or round such values differently.
    """
    if value.type == to:
        return value
    if to is Scalar.DOUBLE:
        return _double(value)
    if value.type is Scalar.BOOLEAN and to in DIGITS_OF:
        return Value(f"CAST({value.text} AS {duckdb_type(to)})", to)
    word = "CAST" if fails else "TRY_CAST"
    if value.type is Scalar.DOUBLE and to in DIGITS_OF:
        return _truncated(value, to, word)
    if not (value.type is None or (is_whole(value) and to is Scalar.STRING) or _are_numbers((value.type, to))):
        raise Untranslatable(f"a cast of {spark_type(value.type)} to {spark_type(to)}")
    # DuckDB rounds where Spark cuts off what follows the point.
    cut = isinstance(value.type, Decimal) and not isinstance(to, Decimal)
    text = f"trunc({value.text})" if cut else value.text
    return Value(f"{word}({text} AS {duckdb_type(to)})", to)


def _double(value: Value) -> Value:
    if value.written:
        return _written(value.written)
    if value.type is not None and not is_whole(value):
        # DuckDB divides two doubles for a decimal, which rounds twice.
        raise Untranslatable(f"a cast of {spark_type(value.type)} to double")
    return Value(f"CAST({value.text} AS DOUBLE)", Scalar.DOUBLE)


def _written(number: str) -> Value:
    """A written number, with any signs, as a double. For Spark it is a decimal first, which has no negative zero."""
    digits = number.lstrip("-")
    negative = (len(number) - len(digits)) % 2 and float(digits)
    return Value(f"({'-' if negative else ''}{digits}e0)", Scalar.DOUBLE)


def _truncated(value: Value, to: DataType, word: str) -> Value:
    """A double as an integer, without what follows the point; for Spark, 2 to the power of 63 is the greatest long."""
    found = f"{word}(trunc({value.text}) AS {duckdb_type(to)})"
    if to is Scalar.LONG:
        found = f"CASE WHEN {value.text} = 9223372036854775808e0 THEN {2**63 - 1} ELSE {found} END"
    return Value(found, to)


def alike(values: Sequence[Value]) -> list[Value]:
    """The values in one type that holds all of them, as Spark widens the branches of an expression.

    Raises:
        Untranslatable: there is no such type.
    """
    types = {v.type for v in values if v.type is not None}
    if not types:
        return list(values)
    common = next(iter(types)) if len(types) == 1 else _widest(types)
    return [cast(v, common) for v in values]


def _widest(types: set[DataType]) -> DataType:
    if Scalar.DOUBLE in types and _are_numbers(types - {Scalar.DOUBLE}):
        return Scalar.DOUBLE
    if not _are_numbers(types):
        raise Untranslatable(f"one value of the types {', '.join(sorted(map(spark_type, types)))}")
    decimals = [t if isinstance(t, Decimal) else Decimal(DIGITS_OF[t]) for t in types]  # type: ignore[index]
    if not any(isinstance(t, Decimal) for t in types):
        return Scalar.LONG
    scale = max(d.scale for d in decimals)
    digits = max(d.precision - d.scale for d in decimals) + scale
    if digits > DIGITS:
        raise Untranslatable(f"decimals of {digits} digits")
    return Decimal(digits, scale)


def _are_numbers(types: Iterable[DataType]) -> bool:
    return all(isinstance(t, Decimal) or t in DIGITS_OF for t in types)
