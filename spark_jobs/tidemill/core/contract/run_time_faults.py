"""Which parts of a predicate can fail the whole batch, as far as the types of its columns tell.

Spark runs in ANSI mode: a cast that a value does not fit, a division by zero and a decimal that leaves 38 digits raise
an error. Sums of integers are looked at in `tidemill.core.contract.exact_sums`. What the types rule out is not named:
a cast to a text, a division by 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from sqlglot import exp

from tidemill.core.contract.expression_types import Known, TypedTree
from tidemill.core.contract.schema import Decimal, Scalar
from tidemill.core.sql.dialect import tree_of
from tidemill.core.sql.syntax import is_safe

_PRECISION, _LEAST_SCALE = 38, 6
_INTEGERS: Mapping[Known, int] = {Scalar.INTEGER: 10, Scalar.LONG: 19}
_DIVIDED: Mapping[type[exp.Expr], str] = {exp.Div: "/", exp.IntDiv: "div", exp.Mod: "%"}
_COMPUTED: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "try_add"),
    exp.Sub: ("-", "try_subtract"),
    exp.Mul: ("*", "try_multiply"),
}
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)
_SAFE: Mapping[Known, tuple[exp.DType, ...]] = {
    Scalar.INTEGER: (exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE),
    Scalar.LONG: (exp.DType.BIGINT, exp.DType.FLOAT, exp.DType.DOUBLE),
    Scalar.DOUBLE: (exp.DType.DOUBLE, exp.DType.FLOAT),
    Scalar.DATE: (exp.DType.DATE,),
    Scalar.TIMESTAMP: (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ),
}
_SHORT, _MOST = 60, 20


@dataclass(frozen=True, slots=True)
class Fault:
    """A part of a predicate that fails for some values: its sign, its text, and the function that is null instead."""

    sign: str
    part: str
    instead: str


@dataclass(frozen=True, slots=True)
class _Digits:
    """An exact number has at most so many digits before and after the point; integers are computed in bits."""

    whole: int
    scale: int
    is_decimal: bool


def possible_faults(predicate: str, types: Mapping[str, Known]) -> tuple[Fault, ...]:
    """The casts, divisions and computations with decimals in a predicate that can fail over columns of these types.

    It names up to 20 of them. A text that cannot be read has none.
    """
    try:
        typed = TypedTree(tree_of(predicate), {name.lower(): kind for name, kind in types.items()})
    except (ValueError, RecursionError):
        return ()
    return tuple(islice(_faults(typed), _MOST))


def _faults(typed: TypedTree) -> Iterator[Fault]:
    digits: dict[int, _Digits] = {}
    # Without recursion, children first: a sum may be as long as the text.
    for node in reversed(typed.nodes):
        found = _digits(node, typed, digits)
        fails = found is not None and type(node) in _COMPUTED and _overflows(node, found)
        # What is computed from a part that fails is not told, too.
        if found is not None and not fails:
            digits[id(node)] = found
        if type(node) in _DIVIDED and not _is_whole_literal(node.expression):
            instead = "try_mod" if isinstance(node, exp.Mod) else "try_divide"
            yield Fault(_DIVIDED[type(node)], _shown(node), instead)
        elif isinstance(node, exp.Cast) and not is_safe(node) and not _always_casts(node, typed):
            yield Fault("cast", _shown(node), "try_cast")
        elif fails:
            yield Fault(_COMPUTED[type(node)][0], _shown(node), _COMPUTED[type(node)][1])


def _digits(node: exp.Expr, typed: TypedTree, found: Mapping[int, _Digits]) -> _Digits | None:
    """The digits of a decimal, or of an integer beside one; None for doubles and for what is not certain."""
    match node:
        case exp.Column() | exp.Literal():
            return _of_leaf(node, typed.of(node))
        case exp.Paren() | exp.Neg():
            return found.get(id(node.this))
        case exp.Add() | exp.Sub() | exp.Mul():
            left, right = found.get(id(node.this)), found.get(id(node.expression))
            if left is None or right is None:
                return None
            is_decimal = left.is_decimal or right.is_decimal
            if isinstance(node, exp.Mul):
                return _Digits(left.whole + right.whole, left.scale + right.scale, is_decimal)
            return _Digits(max(left.whole, right.whole) + 1, max(left.scale, right.scale), is_decimal)
        case _:
            return None


def _of_leaf(node: exp.Expr, known: Known) -> _Digits | None:
    if isinstance(known, Decimal):
        return _Digits(known.precision - known.scale, known.scale, is_decimal=True)
    if known in _INTEGERS:
        return _Digits(_INTEGERS[known], 0, is_decimal=False)
    whole, _, rest = node.name.partition(".")
    if isinstance(node, exp.Literal) and not node.is_string and f"{whole}{rest}".isdigit():
        return _Digits(len(whole.lstrip("0")), len(rest), is_decimal="." in node.name)
    return None


def _overflows(node: exp.Expr, found: _Digits) -> bool:
    """Whether 38 digits may be too few, although Spark gives up digits after the point beyond the sixth."""
    if not found.is_decimal:
        return False
    # Spark counts one digit more for a product than it can have.
    planned = found.whole + (1 if isinstance(node, exp.Mul) else 0)
    if planned + found.scale <= _PRECISION:
        return False
    scale = max(_PRECISION - planned, min(found.scale, _LEAST_SCALE))
    return found.whole > _PRECISION - scale


def _is_whole_literal(node: exp.Expr) -> bool:
    """Whether it is written as a whole number above 0."""
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) > 0


def _always_casts(node: exp.Cast, typed: TypedTree) -> bool:
    """Whether every value of the type fits."""
    known, to = typed.of(node.this), node.to
    if not isinstance(to, exp.DataType):
        return False
    always = (exp.DType.DOUBLE, exp.DType.FLOAT) if isinstance(known, Decimal) else ()
    if to.this in (*_TEXTS, *always) or (isinstance(known, Scalar) and to.this in _SAFE.get(known, ())):
        return True
    held = _of_leaf(node.this, known) if isinstance(known, Decimal) or known in _INTEGERS else None
    sizes = [int(size.name) for size in to.expressions if size.name.isdigit()]
    if held is None or to.this is not exp.DType.DECIMAL or not sizes:
        return False
    scale = sizes[1] if len(sizes) > 1 else 0
    # Rounding 9.99 to one digit after the point gives one digit more before it.
    return sizes[0] - scale >= held.whole + (scale < held.scale)


def _shown(node: exp.Expr) -> str:
    try:
        text = node.sql(dialect="spark")
    except RecursionError:
        return "a long part of it"
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."
