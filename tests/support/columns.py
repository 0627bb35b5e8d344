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

VALUES = {
    **dict(
        zip(
            "slixdbDTyao",
            ("note", "count", "small", "ratio", "price", "flag", "day", "ts", "bytes", "tags", "person"),
            strict=True,
        )
    ),
    "t": "1Y",
    "h": "2S",
    "f": "cast(ratio AS FLOAT)",
    "N": "to_timestamp_ntz('2026-01-01')",
    "n": "NULL",
    "m": "map('a', small)",
    "Y": "interval '1' month",
    "V": "(ts - ts)",
    "C": "make_interval(1)",
    "k": "parse_json('1')",
}
"""A value of each kind, by its letter."""
