"""What is known of a type, as far as it counts for what Spark converts by itself."""

from __future__ import annotations

from enum import Enum

from tidemill.core.contract.schema import Array, DataType, Decimal, Scalar
from tidemill.core.contract.sql_types import NUMBERS, SqlType


class Number(Enum):
    """A number whose exact type only Spark knows."""

    WHOLE = "a whole number"
    ANY = "a number"


Known = DataType | Number | None
"""What is known of a type; None is nothing."""


class Family(Enum):
    """Types between which Spark converts as it likes."""

    TEXT = "text"
    NUMBER = "number"
    BOOLEAN = "boolean"
    MOMENT = "date or time"
    OTHER = "other"


_FAMILIES = {
    Scalar.STRING: Family.TEXT,
    Scalar.BOOLEAN: Family.BOOLEAN,
    Scalar.INTEGER: Family.NUMBER,
    Scalar.LONG: Family.NUMBER,
    Scalar.DOUBLE: Family.NUMBER,
    Scalar.DATE: Family.MOMENT,
    Scalar.TIMESTAMP: Family.MOMENT,
}
_ROUGH = {"s": Scalar.STRING, "b": Scalar.BOOLEAN, "D": Scalar.DATE, "T": Scalar.TIMESTAMP, "y": Scalar.BINARY}


def family(known: Known) -> Family | None:
    """The family of a type; None if nothing is known."""
    if known is None:
        return None
    if isinstance(known, Number | Decimal):
        return Family.NUMBER
    return _FAMILIES.get(known, Family.OTHER) if isinstance(known, Scalar) else Family.OTHER


def roughly(exact: SqlType | None) -> Known:
    """A type as far as it counts for what Spark converts."""
    if exact is None:
        return None
    if exact.letter in NUMBERS:
        return Number.WHOLE if exact.letter in "thil" else Number.ANY
    if exact.letter == "a":
        item = roughly(exact.parts[0])
        return Array(item) if item is not None and not isinstance(item, Number) else None
    return Scalar.TIMESTAMP if exact.letter == "N" else _ROUGH.get(exact.letter)
