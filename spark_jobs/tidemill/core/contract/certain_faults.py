"""Refuses parts of expressions that Spark refuses or that fail for every row, and that can be known without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.literals import is_castable
from tidemill.core.contract.schema import Array, Object, Scalar, spark_type
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.function_types import COMPARES

ALIKE = ("compared", "put into one column", *(f"given to {name}" for name in (*COMPARES, "if", "nvl2")))
"""Uses of values of which Spark makes one type."""

_APART = (Family.NUMBER, Family.BOOLEAN, Family.MOMENT)
_MOMENTS: Mapping[exp.DType, Scalar] = {
    exp.DType.DATE: Scalar.DATE,
    **dict.fromkeys((exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ), Scalar.TIMESTAMP),
    exp.DType.TIMESTAMPNTZ: Scalar.TIMESTAMP,
}
_EXAMPLES = {Scalar.DATE: "date'2020-02-29'", Scalar.TIMESTAMP: "timestamp'2020-02-29 23:59:59Z'"}
_WORDS = {Family.NUMBER: "a number", Family.BOOLEAN: "true or false", Family.MOMENT: "a date or a time"}


def check_parts(typed: TypedTree, node: exp.Expr, expression: str) -> None:
    """Refuse a node whose parts cannot stand together.

    Raises:
        DeclarationError: a field that an object does not have, a list without values, a day that there is not, or
            more than one character to escape with.
    """
    match node:
        case exp.Column():
            _check_path(typed, node, expression)
        case exp.In() if not node.expressions:
            raise DeclarationError(f"`in ()` has no values in {expression!r}", fix="list the values")
        case exp.Escape() if isinstance(node.expression, exp.Literal) and len(node.expression.name) != 1:
            shown = node.expression.sql(dialect="spark")
            raise DeclarationError(f"{shown} is no single character, so nothing can be escaped with it: {expression!r}")
        case exp.Anonymous(expressions=[_, _, exp.Literal(is_string=True) as sign]) if (
            node.name.lower() in ("like", "ilike") and len(sign.name) != 1
        ):
            shown = sign.sql(dialect="spark")
            raise DeclarationError(
                f"{shown} is no single character to escape with in {expression!r}: Spark refuses it", fix="write '!'"
            )
        case exp.Cast():
            _check_moment(node, expression)
        case _:
            pass


def _check_moment(node: exp.Cast, expression: str) -> None:
    """Refuse a date or a time that is written as a text which is none."""
    wanted = _MOMENTS.get(node.to.this) if isinstance(node.to, exp.DataType) else None
    text = node.this
    if wanted is None or node.args.get("safe") or not isinstance(text, exp.Literal) or not text.is_string:
        return
    if "\\" not in text.name and not is_castable(text.name, wanted):
        raise DeclarationError(
            f"{text.name!r} is no {wanted.value} in {expression!r}: Spark would fail the batch",
            fix=f"write a {wanted.value} that there is, for example {_EXAMPLES[wanted]}",
        )


def check_alike(typed: TypedTree, operands: Sequence[exp.Expr], use: str, expression: str) -> None:
    """Refuse values of different kinds where Spark needs one kind.

    Raises:
        DeclarationError: for example, a date is compared with a number.
    """
    if use not in ALIKE:
        return
    first: exp.Expr | None = None
    for each in operands:
        kind = _kind(typed.of(each))
        if kind is None:
            continue
        if first is not None and kind != _kind(typed.of(first)):
            one, other = (f"`{n.sql(dialect='spark')}` ({_shown(typed.of(n))})" for n in (first, each))
            raise DeclarationError(
                f"{one} and {other} are {use} in {expression!r}, and Spark cannot make them one type",
                fix="convert one of them to the type of the other",
            )
        first = first or each


def _kind(known: Known) -> object:
    """What must be alike; None if the type is not certain, or may be converted."""
    if isinstance(known, Array | Object):
        return type(known)
    kind = family(known)
    return kind if kind in _APART else None


def _shown(known: Known) -> str:
    if isinstance(known, Array | Object):
        return spark_type(known)
    return known.value if isinstance(known, Number) else _WORDS.get(family(known) or Family.OTHER, "")


def _check_path(typed: TypedTree, node: exp.Column, expression: str) -> None:
    for found, name in _steps(typed, node):
        if isinstance(found, Object) and name.lower() not in [field.name.lower() for field in found.fields]:
            known = ", ".join(field.name for field in found.fields)
            raise DeclarationError(
                f"`{node.sql(dialect='spark')}` in {expression!r}: there is no field `{name}`; there are {known}"
            )


def _steps(typed: TypedTree, node: exp.Column) -> Iterator[tuple[Known, str]]:
    """The type of each object that a path goes through, and the field that it takes there."""
    first, *inner = (part.name for part in node.parts)
    found = typed.column(first)
    for name in inner:
        yield found, name
        fields = found.fields if isinstance(found, Object) else ()
        found = next((field.type for field in fields if field.name.lower() == name.lower()), None)
