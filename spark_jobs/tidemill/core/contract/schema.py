"""The types that a contract can give to a field, independent of any engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from tidemill.core.sql.text import quoted


class Scalar(StrEnum):
    """Types without parameters. The value is the type's name in Spark SQL."""

    STRING = "string"
    BINARY = "binary"
    BOOLEAN = "boolean"
    INTEGER = "int"
    LONG = "bigint"
    DOUBLE = "double"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits (1 to 38), `scale` of them after the point."""

    precision: int
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.precision <= 38 and 0 <= self.scale <= self.precision):
            raise ValueError(f"not a decimal type: decimal({self.precision},{self.scale})")


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type; items may be null."""

    item: DataType


@dataclass(frozen=True, slots=True)
class Object:
    """A value with named fields."""

    fields: tuple[Field, ...]


DataType = Scalar | Decimal | Array | Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A named, typed column. `required` means that null is not a valid value."""

    name: str
    type: DataType
    required: bool = False
    description: str = ""


def nameable(name: str) -> bool:
    """Whether a field can have this name in every format: it has no quotes, backslashes or control characters."""
    return name.isprintable() and not set(name) & set('"\\')


def ddl(fields: Iterable[Field]) -> str:
    """The fields as the columns of a Spark SQL schema."""
    return ", ".join(f"{quoted(f.name)} {spark_type(f.type)}" for f in fields)


def cast_or_null(value: str, data_type: DataType) -> str:
    """Spark SQL that casts the expression `value`; null where a value cannot be cast."""
    return f"try_cast({value} AS {spark_type(data_type)})"


def spark_type(data_type: DataType) -> str:
    """The type as Spark SQL writes it, for example `array<struct<a: bigint>>`."""
    match data_type:
        case Scalar():
            return data_type.value
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(item):
            return f"array<{spark_type(item)}>"
        case Object(fields):
            inner = ", ".join(f"`{f.name}`: {spark_type(f.type)}" for f in fields)
            return f"struct<{inner}>"
        case _:
            assert_never(data_type)
