"""How many digits the decimals in a predicate have, and where 38 of them are too few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Known
from tidemill.core.contract.schema import Decimal, Scalar

INTEGERS: Mapping[Known, int] = {Scalar.INTEGER: 10, Scalar.LONG: 19}
"""Integers, and how many digits they have at most."""

_PRECISION, _LEAST_SCALE = 38, 6
_OF_ALL = ("coalesce", "ifnull", "nvl", "greatest", "least")
_OF_SOME = {"if": slice(1, None), "nvl2": slice(1, None), "nullif": slice(0, 1), "abs": slice(0, 1)}


@dataclass(frozen=True, slots=True)
class Digits:
    """An exact number has at most so many digits before and after the point; integers are computed in bits."""

    whole: int
    scale: int
    is_decimal: bool

    def fitted(self) -> Digits:
        """As Spark keeps it: it gives up digits after the point beyond the sixth, so that 38 are enough."""
        if self.whole + self.scale <= _PRECISION:
            return self
        return Digits(self.whole, max(_PRECISION - self.whole, min(self.scale, _LEAST_SCALE)), self.is_decimal)


def digits_of(node: exp.Expr, typed: TypedTree, found: Mapping[int, Digits]) -> Digits | None:
    """The digits of a decimal, or of an integer beside one; None for doubles and for what is not certain."""
    match node:
        case exp.Column() | exp.Literal():
            return of_leaf(node, typed.of(node))
        case exp.Paren() | exp.Neg():
            return found.get(id(node.this))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            left, right = found.get(id(node.this)), found.get(id(node.expression))
            return None if left is None or right is None else _of_two(node, left, right)
        case exp.Case():
            default = node.args.get("default")
            results = [branch.args["true"] for branch in node.args["ifs"]]
            return _common([*results, *([] if default is None else [default])], found)
        case exp.Anonymous():
            name = node.name.lower()
            if name in _OF_ALL:
                return _common(node.expressions, found)
            return _common(node.expressions[_OF_SOME[name]], found) if name in _OF_SOME else None
        case _:
            return None


def _of_two(node: exp.Expr, left: Digits, right: Digits) -> Digits | None:
    is_decimal = left.is_decimal or right.is_decimal
    match node:
        case exp.Mul():
            return Digits(left.whole + right.whole, left.scale + right.scale, is_decimal)
        case exp.Div():
            scale = max(_LEAST_SCALE, left.scale + right.whole + right.scale + 1)
            return Digits(left.whole + right.scale, scale, is_decimal) if is_decimal else None
        case exp.Mod():
            return Digits(min(left.whole, right.whole), max(left.scale, right.scale), is_decimal)
        case _:
            return Digits(max(left.whole, right.whole) + 1, max(left.scale, right.scale), is_decimal)


def _common(nodes: Iterable[exp.Expr], found: Mapping[int, Digits]) -> Digits | None:
    """The digits that hold each of several values; a null has none."""
    each = [found.get(id(node)) for node in nodes if not isinstance(node, exp.Null)]
    known = [digits for digits in each if digits is not None]
    if not known or len(known) < len(each):
        return None
    return Digits(
        max(digits.whole for digits in known),
        max(digits.scale for digits in known),
        any(digits.is_decimal for digits in known),
    )


def of_leaf(node: exp.Expr, known: Known) -> Digits | None:
    """The digits of a column or a literal."""
    if isinstance(known, Decimal):
        return Digits(known.precision - known.scale, known.scale, is_decimal=True)
    if known in INTEGERS:
        return Digits(INTEGERS[known], 0, is_decimal=False)
    whole, _, rest = node.name.partition(".")
    if isinstance(node, exp.Literal) and not node.is_string and f"{whole}{rest}".isdigit():
        return Digits(len(whole.lstrip("0")), len(rest), is_decimal="." in node.name)
    return None


def overflows(node: exp.Expr, found: Digits) -> bool:
    """Whether 38 digits may be too few for a computation, although Spark gives up digits after the sixth."""
    if not found.is_decimal:
        return False
    # Spark counts one digit more for a product than it can have.
    planned = found.whole + (1 if isinstance(node, exp.Mul) else 0)
    if planned + found.scale <= _PRECISION:
        return False
    scale = max(_PRECISION - planned, min(found.scale, _LEAST_SCALE))
    return found.whole > _PRECISION - scale
