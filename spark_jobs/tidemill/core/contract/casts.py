"""Refuses casts between types that Spark does not convert, and to decimals that it does not have."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.schema import Array, Object, Scalar, spark_type
from tidemill.core.errors import DeclarationError

_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)
_NUMBERS = (
    *(exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT),
    *(exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL),
)
_TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)
_NESTED = (exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT)
_PLAIN = (*_NUMBERS, *_TIMES, exp.DType.DATE, exp.DType.BOOLEAN, exp.DType.BINARY)
_KINDS = (*_PLAIN, *_NESTED)
_TAKEN: Mapping[object, tuple[exp.DType, ...]] = {
    Family.TEXT: _PLAIN,
    Family.NUMBER: (*_NUMBERS, *_TIMES, exp.DType.BOOLEAN),
    Family.BOOLEAN: (*_NUMBERS, exp.DType.BOOLEAN),
    Scalar.DATE: (exp.DType.DATE, *_TIMES),
    Scalar.TIMESTAMP: (exp.DType.DATE, *_TIMES, *_NUMBERS),
    Scalar.BINARY: (exp.DType.BINARY,),
    Array: (exp.DType.ARRAY,),
    Object: (exp.DType.STRUCT,),
}
"""What each kind of value can be cast to in ANSI mode, beside a text."""


def check_cast(typed: TypedTree, node: exp.Expr, expression: str) -> None:
    """Refuse a cast that Spark's analyzer refuses, as far as that is certain.

    Raises:
        DeclarationError: Spark does not convert between these types.
    """
    if not isinstance(node, exp.Cast) or not isinstance(node.to, exp.DataType):
        return
    known = typed.of(node.this)
    taken = _taken(known)
    if taken is None or node.to.this not in _KINDS or node.to.this in taken:
        return
    shown, target = node.this.sql(dialect="spark"), node.to.sql(dialect="spark")
    raise DeclarationError(
        f"`{shown}` is {_shown(known)}, which Spark does not cast to {target}, found in {expression!r}",
        fix=_instead(known, node.to.this, shown),
    )


def _taken(known: Known) -> tuple[exp.DType, ...] | None:
    if isinstance(known, Array | Object):
        return _TAKEN[type(known)]
    return _TAKEN.get(known) or _TAKEN.get(family(known))


def _instead(known: Known, to: exp.DType, shown: str) -> str:
    if known is Scalar.DATE and to in _NUMBERS:
        return f"write unix_date({shown}), the days since 1970-01-01, or year({shown})"
    if family(known) is Family.NUMBER and to is exp.DType.DATE:
        return f"write date_from_unix_date({shown}), if it counts days since 1970-01-01"
    if isinstance(known, Array | Object):
        return "take an item or a field of it"
    return f"leave out the cast, or compare a text: cast({shown} AS STRING)"


def _shown(known: Known) -> str:
    if isinstance(known, Number):
        return known.value
    return f"of type {spark_type(known)}" if known is not None else ""
