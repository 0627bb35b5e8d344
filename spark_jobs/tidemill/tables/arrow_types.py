"""The types of a contract as Arrow types, and back.

Arrow keeps the promises of Spark's types: times are microseconds since 1970 in UTC, decimals are exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar

_SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BINARY: pa.binary(),
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.INTEGER: pa.int32(),
    Scalar.LONG: pa.int64(),
    Scalar.DOUBLE: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.TIMESTAMP: pa.timestamp("us", "UTC"),
}

_WIDENED: dict[pa.DataType, Scalar] = {
    pa.int8(): Scalar.INTEGER,
    pa.int16(): Scalar.INTEGER,
    pa.uint8(): Scalar.INTEGER,
    pa.uint16(): Scalar.INTEGER,
    pa.uint32(): Scalar.LONG,
    pa.float32(): Scalar.DOUBLE,
    pa.large_string(): Scalar.STRING,
    pa.large_binary(): Scalar.BINARY,
}


def arrow_type(data_type: DataType) -> pa.DataType:
    """The Arrow type that holds every value of `data_type`; nested values may be null."""
    match data_type:
        case Scalar():
            return _SCALARS[data_type]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Array(item):
            return pa.list_(arrow_type(item))
        case Object(fields):
            return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in fields])
        case _:
            assert_never(data_type)


def arrow_schema(fields: Iterable[Field]) -> pa.Schema:
    """One nullable column per field, in order.

    `required` is a rule about rows, not a property of columns: a rejected row has nulls everywhere.
    """
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in fields])


def data_type(arrow: pa.DataType) -> DataType:
    """The type of contracts whose Arrow type is `arrow`, or which holds every value of it.

    Raises:
        ValueError: there is none: for times without a zone, unsigned 64-bit numbers, maps and others.
    """
    for scalar, known in (*_SCALARS.items(), *((s, a) for a, s in _WIDENED.items())):
        if arrow.equals(known):
            return scalar
    if pa.types.is_timestamp(arrow) and arrow.tz is not None:
        return Scalar.TIMESTAMP
    if pa.types.is_decimal128(arrow) and arrow.scale >= 0:
        return Decimal(arrow.precision, arrow.scale)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow):
        return Array(data_type(arrow.value_type))
    if pa.types.is_struct(arrow):
        return Object(schema_fields(arrow))
    raise ValueError(f"no contract type for Arrow's {arrow}")


def schema_fields(schema: pa.Schema | pa.StructType) -> tuple[Field, ...]:
    """The fields of an Arrow schema; a column that is not nullable is required.

    Raises:
        ValueError: a column has a type that contracts do not have.
    """
    return tuple(Field(name=f.name, type=data_type(f.type), required=not f.nullable) for f in schema)
