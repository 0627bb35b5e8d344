"""The types that casts name, and whether Spark has such a cast."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemill.core.contract.operator_rules import MismatchError, is_cast
from tidemill.core.contract.sql_types import SqlType, named
from tidemill.core.sql.interval_fields import written_interval

_LETTERS: Mapping[exp.DType, str] = {
    **dict.fromkeys((exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR), "s"),
    exp.DType.TINYINT: "t",
    exp.DType.SMALLINT: "h",
    exp.DType.INT: "i",
    exp.DType.BIGINT: "l",
    exp.DType.FLOAT: "f",
    exp.DType.DOUBLE: "x",
    exp.DType.DECIMAL: "d",
    exp.DType.BOOLEAN: "b",
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), "T"),
    exp.DType.TIMESTAMPNTZ: "N",
    exp.DType.DATE: "D",
    exp.DType.TIME: "Z",
    exp.DType.BINARY: "y",
    exp.DType.VARIANT: "k",
}


def type_of_cast(found: SqlType | None, node: exp.Cast) -> SqlType | None:
    """The type to which a value is cast; None if it is not certain.

    Raises:
        MismatchError: Spark has no such cast.
    """
    target = named_type(node.to) if isinstance(node.to, exp.DataType) else None
    if target is not None and target.letter == "Z":
        raise MismatchError("Spark has its type TIME switched off", "cast it to a timestamp or a text")
    if not is_cast(found, target):
        raise MismatchError(
            f"Spark does not cast `{found}` to `{target}`", "leave out the cast, or cast what is inside"
        )
    return target


def named_type(to: exp.DataType) -> SqlType | None:
    """The type that a text names; None if it is not one of those that are known here."""
    match to.this:
        case exp.DType.ARRAY if len(to.expressions) == 1:
            return SqlType("array", (_inner(to.expressions[0]),))
        case exp.DType.MAP if len(to.expressions) == 2:
            return SqlType("map", tuple(map(_inner, to.expressions)))
        case exp.DType.STRUCT:
            fields = [(field.name, _inner(field.args.get("kind"))) for field in to.expressions]
            return SqlType("struct", tuple(kind for _, kind in fields), tuple(name for name, _ in fields))
        case exp.Interval():
            name = written_interval(to.this.sql(dialect="spark"))
            return SqlType(name) if name else None
        case _:
            letter = _LETTERS.get(to.this) if isinstance(to.this, exp.DType) else None
            return None if letter is None else named(letter)


def _inner(node: object) -> SqlType | None:
    return named_type(node) if isinstance(node, exp.DataType) else None
