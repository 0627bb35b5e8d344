"""Columns of every kind, for tests of expressions."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar

TYPES: Mapping[str, DataType] = {
    "note": Scalar.STRING,
    "count": Scalar.LONG,
    "small": Scalar.INTEGER,
    "price": Decimal(10, 2),
    "ratio": Scalar.DOUBLE,
    "flag": Scalar.BOOLEAN,
    "ts": Scalar.TIMESTAMP,
    "day": Scalar.DATE,
    "bytes": Scalar.BINARY,
    "tags": Array(Scalar.STRING),
    "person": Object((Field(name="name", type=Scalar.STRING), Field(name="age", type=Scalar.LONG))),
}
