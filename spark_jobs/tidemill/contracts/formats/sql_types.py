"""Types of SQL as types of contracts, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemill.core.contract.row_checks import Plain
from tidemill.core.contract.schema import Array, DataType, Decimal, Field, Object, Scalar

if TYPE_CHECKING:
    from sqlglot import exp

_KINDS: Mapping[Scalar, str] = {
    Scalar.STRING: "TEXT VARCHAR CHAR NVARCHAR NCHAR UUID NAME",
    Scalar.BINARY: "BINARY VARBINARY BLOB LONGBLOB MEDIUMBLOB TINYBLOB",
    Scalar.BOOLEAN: "BOOLEAN",
    Scalar.INTEGER: "INT SMALLINT TINYINT MEDIUMINT UTINYINT USMALLINT SERIAL SMALLSERIAL",
    Scalar.LONG: "BIGINT UINT UMEDIUMINT BIGSERIAL",
    Scalar.DOUBLE: "DOUBLE FLOAT",
    Scalar.DATE: "DATE DATE32",
    Scalar.TIMESTAMP: "TIMESTAMP TIMESTAMPTZ TIMESTAMPLTZ",
}
_SCALARS = {kind: scalar for scalar, kinds in _KINDS.items() for kind in kinds.split()}
_RANGES = {
    "TINYINT": (-(2**7), 2**7 - 1),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "MEDIUMINT": (-(2**23), 2**23 - 1),
    "UTINYINT": (0, 2**8 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "UMEDIUMINT": (0, 2**24 - 1),
    "UINT": (0, 2**32 - 1),
    "SMALLSERIAL": (-(2**15), 2**15 - 1),
}
"""The least and the greatest value of integers that are shorter than those of contracts."""

_UNSURE = ("DATETIME", "TIMESTAMPNTZ", "DATETIME2", "DATETIME64", "SMALLDATETIME")


def type_of_sql(kind: exp.DataType, name: str, lost: list[str]) -> DataType | None:
    """The type of a contract that holds the same values; None if there is none, which is noted in `lost`."""
    said = kind.this.value if hasattr(kind.this, "value") else str(kind.this)
    if said in ("DECIMAL", "UDECIMAL", "BIGDECIMAL"):
        return _decimal(kind, name, lost)
    if said in ("ARRAY", "LIST") and kind.expressions:
        item = type_of_sql(kind.expressions[0], f"{name}[]", lost)
        return None if item is None else Array(item)
    if said in ("STRUCT", "OBJECT") and kind.expressions:
        inner = [(e.name, e.args.get("kind")) for e in kind.expressions]
        typed = [(n, type_of_sql(k, f"{name}.{n}", lost)) for n, k in inner if n and k is not None]
        fields = tuple(Field(name=n, type=t) for n, t in typed if t is not None)
        return Object(fields) if fields else None
    if said in _UNSURE:
        lost.append(f"`{name}`: {said} has no zone; it is taken as a moment in UTC")
        return Scalar.TIMESTAMP
    if said not in _SCALARS:
        lost.append(f"`{name}` is left out: contracts have no type for {kind.sql()}")
    return _SCALARS.get(said)


def counts_up(kind: exp.DataType) -> bool:
    """Whether the database fills in the next number, and takes no null: SERIAL and the like."""
    said = kind.this.value if hasattr(kind.this, "value") else str(kind.this)
    return said in ("SERIAL", "SMALLSERIAL", "BIGSERIAL")


def options_of_sql(kind: exp.DataType, typed: DataType) -> dict[str, Plain]:
    """What the type says about values: the greatest length of a text, that it is a UUID, the range of an integer."""
    said = kind.this.value if hasattr(kind.this, "value") else str(kind.this)
    if said in _RANGES:
        return dict(zip(("minimum", "maximum"), _RANGES[said], strict=True))
    if typed is not Scalar.STRING:
        return {}
    if said == "UUID":
        return {"format": "uuid"}
    size = kind.expressions[0].name if kind.expressions else ""
    return {"maxLength": int(size)} if size.isdigit() else {}


def _decimal(kind: exp.DataType, name: str, lost: list[str]) -> Decimal | None:
    sizes = [e.name for e in kind.expressions]
    try:
        return Decimal(*map(int, sizes)) if sizes else Decimal(38, 18)
    except (TypeError, ValueError):
        lost.append(f"`{name}` is left out: decimals have at most 38 digits, found {kind.sql()}")
        return None
    finally:
        if not sizes:
            lost.append(f"`{name}`: decimal without digits is taken as decimal(38,18)")
