"""Which calls of a predicate can fail the whole batch, as far as the types of its columns and its text tell."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from datetime import date, time

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.guards import is_divided_safely, is_item_there
from tidemill.core.contract.known_types import Known
from tidemill.core.contract.literals import is_castable
from tidemill.core.contract.schema import Scalar
from tidemill.core.sql.dialect import tree_of
from tidemill.core.sql.functions import FAILING_FUNCTIONS
from tidemill.core.sql.syntax_parts import fails_by_an_argument, is_written

_OF_SECONDS = ("unix_timestamp", "to_unix_timestamp")
_OF_MOMENTS = ("to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz")
_MOMENTS = (Scalar.DATE, Scalar.TIMESTAMP)


def failing_calls(predicate: str, types: Mapping[str, Known]) -> frozenset[str]:
    """The functions, and `[]`, that can fail for some values of columns of these types.

    A text that cannot be read has none.
    """
    try:
        typed = TypedTree(tree_of(predicate), {name.lower(): kind for name, kind in types.items()})
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(name for node in typed.nodes if (name := _failing(node, typed)))


def _failing(node: exp.Expr, typed: TypedTree) -> str:
    """The name of a call that can fail; empty if it cannot, or is none."""
    if isinstance(node, exp.Bracket):
        return "" if is_item_there(node) else "[]"
    if not isinstance(node, exp.Anonymous):
        return ""
    name, arguments = node.name.lower(), node.expressions
    if name not in FAILING_FUNCTIONS and not fails_by_an_argument(name, arguments):
        return ""
    return "" if _holds(node, name, arguments, typed) else name


def _holds(node: exp.Anonymous, name: str, arguments: Sequence[exp.Expr], typed: TypedTree) -> bool:
    """Whether a call cannot fail, for its arguments or for what stands around it."""
    if all(is_written(each) for each in arguments) and _is_right(name, [_written(each) for each in arguments]):
        return True
    if name in ("mod", "pmod"):
        return is_divided_safely(node)
    if name == "element_at" and len(arguments) == 2:
        return is_item_there(node)
    if name in _OF_SECONDS and arguments and typed.of(arguments[0]) in _MOMENTS:
        return True
    return name in _OF_MOMENTS and len(arguments) == 1 and typed.of(arguments[0]) in _MOMENTS


def _is_right(name: str, values: Sequence[str]) -> bool:
    """Whether a call of constants is known to succeed."""
    try:
        match name, values:
            case "make_date", [year, month, day]:
                date(int(year), int(month), int(day))
            case (("make_timestamp" | "make_timestamp_ntz" | "make_timestamp_ltz"), [year, month, day, *clock]):
                date(int(year), int(month), int(day))
                time(int(clock[0]), int(clock[1]), int(float(clock[2])))
                return len(clock) == 3
            case (("timestamp_seconds" | "timestamp_millis"), [number]):
                return abs(int(number)) < 2**40
            case "unbase64", [text]:
                b64decode(text, validate=True)
            case _ if name in _OF_MOMENTS and len(values) == 1:
                return is_castable(values[0], Scalar.DATE if name == "to_date" else Scalar.TIMESTAMP)
            case _:
                return False
    except (ValueError, IndexError):
        return False
    return True


def _written(node: exp.Expr) -> str:
    sign = ""
    while isinstance(node, exp.Paren | exp.Neg):
        sign = sign if isinstance(node, exp.Paren) else "-" if sign == "" else ""
        node = node.this
    return f"{sign}{node.name}"
