"""Sums and products of whole numbers in predicates.

Spark runs in ANSI mode: where a sum leaves the bits of its type, the whole batch fails. So a sum that is compared with
something is computed in decimals of 38 digits, which hold it exactly, and the comparison is simply right. Other sums
stay as they are, and can fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from tidemill.core.contract.expression_types import TypedTree
from tidemill.core.contract.known_types import Family, Known, Number, family
from tidemill.core.contract.schema import Scalar
from tidemill.core.sql.dialect import tree_of

_BOUNDS: Mapping[Known, int] = {Scalar.INTEGER: 2**31, Scalar.LONG: 2**63}
_DIGITS: Mapping[Known, int] = {Scalar.INTEGER: 10, Scalar.LONG: 19}
_SIGNS: Mapping[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Neg: "-"}
_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.NullSafeEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Between,
    exp.In,
)
_ABS = "abs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """A predicate as it is run, and the signs and functions in it that still fail for very large numbers."""

    sql: str
    may_fail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Whole:
    """A whole number: it is no further from 0 than `bound`; `decimal` says whether columns in it make it a decimal."""

    bound: int
    decimal: bool = False
    literal: bool = False


def exact(predicate: str, types: Mapping[str, Known]) -> Exact:
    """The predicate with sums that cannot fail, over columns of these types; SQL does not tell capitals in names apart.

    A text that cannot be read stays as it is.
    """
    if not any(sign in predicate for sign in "+-*") and _ABS not in predicate.lower():
        return Exact(sql=predicate)
    return _exact(predicate, tuple((name.lower(), kind) for name, kind in types.items()))


@lru_cache(maxsize=512)
def _exact(predicate: str, types: tuple[tuple[str, Known], ...]) -> Exact:
    try:
        typed = TypedTree(tree_of(predicate), dict(types))
    except (ValueError, RecursionError):
        return Exact(sql=predicate)
    numbers = _numbers(typed)
    covered = [
        each for node in typed.nodes if isinstance(node, _COMPARISONS) for each in _covered(node, typed, numbers)
    ]
    done = {id(node) for operand in covered for node in operand.walk()}
    left = dict.fromkeys(_sign(n) for n in reversed(typed.nodes) if id(n) not in done and _can_leave(n, typed))
    return Exact(sql=_spliced(predicate, covered, typed), may_fail=tuple(left))


def _numbers(typed: TypedTree) -> Mapping[int, _Whole]:
    """What is known of each part that is a whole number and cannot fail if its columns are decimals."""
    found: dict[int, _Whole] = {}
    # Without recursion: a sum may be as long as the text.
    for node in reversed(typed.nodes):
        number = _number(node, typed, found)
        if number is not None and number.bound < 10**38:
            found[id(node)] = number
    return found


def _number(node: exp.Expr, typed: TypedTree, found: Mapping[int, _Whole]) -> _Whole | None:
    known = typed.of(node)
    match node:
        case exp.Column():
            return _Whole(_BOUNDS[known], decimal=True) if known in _BOUNDS and len(node.parts) == 1 else None
        case exp.Literal():
            return _Whole(int(node.name), literal=True) if known is Number.WHOLE else None
        case exp.Paren():
            return found.get(id(node.this))
        case exp.Add() | exp.Sub() | exp.Mul():
            return _of_two(node, found.get(id(node.this)), found.get(id(node.expression)))
        case _ if _is_sum(node):
            [inner] = _operands(node)
            number = found.get(id(inner))
            return number if number is not None and (number.decimal or number.literal) else None
        case _:
            return _Whole(_BOUNDS[known]) if known in _BOUNDS else None


def _of_two(node: exp.Expr, left: _Whole | None, right: _Whole | None) -> _Whole | None:
    if left is None or right is None:
        return None
    bound = left.bound * right.bound if isinstance(node, exp.Mul) else left.bound + right.bound
    literal, decimal = left.literal and right.literal and bound < 2**31, left.decimal or right.decimal
    return _Whole(bound, decimal=decimal, literal=literal) if literal or decimal else None


def _is_sum(node: exp.Expr) -> bool:
    called = isinstance(node, exp.Anonymous) and node.name.lower() == _ABS and len(node.expressions) == 1
    return called or type(node) in _SIGNS


def _sign(node: exp.Expr) -> str:
    return _SIGNS.get(type(node), _ABS)


def _operands(node: exp.Expr) -> Sequence[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Anonymous) else list(node.iter_expressions())


def _covered(node: exp.Expr, typed: TypedTree, numbers: Mapping[int, _Whole]) -> Iterator[exp.Expr]:
    """The operands of a comparison of numbers that are computed exactly."""
    operands = list(node.iter_expressions())
    if all(family(typed.of(each)) is Family.NUMBER or id(each) in numbers for each in operands):
        for each in operands:
            number = numbers.get(id(each))
            if number is not None and number.decimal and any(_is_sum(part) for part in each.walk()):
                yield each


def _can_leave(node: exp.Expr, typed: TypedTree) -> bool:
    """Whether a part may be a sum of whole numbers, one of which is of a column or a function."""
    if not _is_sum(node):
        return False
    operands = _operands(node)
    if any(_is_fraction(each) for each in operands):
        return False
    kinds = [typed.of(each) for each in operands]
    return all(k is None or k in _BOUNDS or isinstance(k, Number) for k in kinds) and any(k in _BOUNDS for k in kinds)


def _is_fraction(node: exp.Expr) -> bool:
    """Whether it is written with a point or an exponent: then the sum is none of integers."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal) and not node.is_string and not node.name.isdigit()


def _spliced(predicate: str, covered: Sequence[exp.Expr], typed: TypedTree) -> str:
    found = {
        (node.this.meta["start"], node.this.meta["end"]): _DIGITS[typed.of(node)]
        for operand in covered
        for node in operand.walk()
        if isinstance(node, exp.Column) and typed.of(node) in _DIGITS and "start" in node.this.meta
    }
    for (start, end), digits in sorted(found.items(), reverse=True):
        name = predicate[start : end + 1]
        predicate = f"{predicate[:start]}CAST({name} AS DECIMAL({digits}, 0)){predicate[end + 1 :]}"
    return predicate
