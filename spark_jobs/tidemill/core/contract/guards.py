"""Whether the text around a division, or around an item of an array, keeps away the values for which it would fail.

Spark computes only the branch of a CASE or an IF that a row takes. What is not recognized here is no guard.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

_HIGHEST, _DEEPEST = 100, 40
_COMPARED: Mapping[type[exp.Expr], Callable[[float, float], bool]] = {
    exp.EQ: operator.eq,
    exp.NullSafeEQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.NullSafeNEQ: operator.ne,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
}
_SIZES = ("size", "array_size", "cardinality")

Tested = tuple[exp.Expr, bool]
"""A condition, and whether it was true; if not, it was false or null."""


def is_never_zero(value: exp.Expr) -> bool:
    """Whether a value is null or another number than 0, whatever the row has."""
    value = _bare(value)
    if (number := _number(value)) is not None:
        return number != 0
    if isinstance(value, exp.Neg):
        return is_never_zero(value.this)
    if not isinstance(value, exp.Anonymous) or not value.expressions:
        return False
    match value.name.lower():
        case "nullif":
            return _number(value.expressions[-1]) == 0
        case "abs":
            return is_never_zero(value.expressions[0])
        case "greatest":
            return is_positive(value)
        case "coalesce" | "ifnull" | "nvl":
            return all(is_never_zero(each) for each in value.expressions)
        case _:
            return False


def is_positive(value: exp.Expr) -> bool:
    """Whether a value is at least a number above 0 that is written in it."""
    value = _bare(value)
    if not isinstance(value, exp.Anonymous) or value.name.lower() != "greatest":
        return False
    return any((_number(each) or 0) > 0 for each in value.expressions)


def is_divided_safely(node: exp.Expr) -> bool:
    """Whether a division cannot meet a divisor of 0: of `a / b` the second value, of `mod(a, b)`, too."""
    divisor = node.expressions[1] if isinstance(node, exp.Anonymous) else node.expression
    return is_never_zero(divisor) or _excluded(node, {_text(divisor)}, (0,))


def is_item_there(node: exp.Expr) -> bool:
    """Whether an item of an array is asked for only where the array has so many: `if(size(a) > 0, a[0], null)`."""
    array, *places = (node.this, *node.expressions) if isinstance(node, exp.Bracket) else node.expressions
    first = 0 if isinstance(node, exp.Bracket) else 1
    place = _number(places[0]) if len(places) == 1 else None
    if place is None or not first <= place < _HIGHEST:
        return False
    sizes = {f"{name}({_text(array)})" for name in _SIZES}
    return _excluded(node, sizes, range(int(place) - first + 1))


def _excluded(node: exp.Expr, texts: set[str], values: Sequence[int]) -> bool:
    """Whether the conditions around a node keep away each of these values of what these texts compute."""
    return any(_excludes(condition, held, texts, values, _DEEPEST) for condition, held in _tested(node))


def _tested(node: exp.Expr) -> Iterator[Tested]:
    """What was tested before Spark computes a node: by each CASE and IF around it, from the inside."""
    for _ in range(_HIGHEST):
        parent = node.parent
        # The variables of a lambda may have names of columns.
        if parent is None or isinstance(parent, exp.Lambda):
            return
        if isinstance(parent, exp.Anonymous) and parent.name.lower() == "if" and len(parent.expressions) == 3:
            condition, true, _other = parent.expressions
            if node is not condition:
                yield condition, node is true
        elif isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case):
            yield from _before(parent.parent, parent)
            if node is parent.args.get("true"):
                yield _condition(parent.parent, parent), True
        elif isinstance(parent, exp.Case) and node is parent.args.get("default"):
            yield from _before(parent, None)
        node = parent


def _before(case: exp.Case, branch: exp.If | None) -> Iterator[Tested]:
    """The conditions of a CASE that did not hold, if it comes to a branch."""
    for each in case.args["ifs"]:
        if each is branch:
            return
        yield _condition(case, each), False


def _condition(case: exp.Case, branch: exp.If) -> exp.Expr:
    return branch.this if case.this is None else exp.EQ(this=case.this.copy(), expression=branch.this.copy())


def _excludes(condition: exp.Expr, held: bool, texts: set[str], values: Sequence[int], deep: int) -> bool:
    """Whether a condition cannot have been true (or, with `held` False, not true) for any of these values."""
    condition = _bare(condition)
    if deep == 0:
        return False
    if isinstance(condition, exp.Not):
        return _excludes(condition.this, not held, texts, values, deep - 1)
    if isinstance(condition, exp.And | exp.Or):
        one_is_enough = isinstance(condition, exp.And) == held
        sides = (condition.left, condition.right)
        found = (_excludes(side, held, texts, values, deep - 1) for side in sides)
        return any(found) if one_is_enough else all(found)
    compare = _COMPARED.get(type(condition))
    if compare is None:
        return False
    left, right = _bare(condition.this), _bare(condition.expression)
    if (bound := _number(right)) is not None and _text(left) in texts:
        return all(compare(value, bound) is not held for value in values)
    if (bound := _number(left)) is not None and _text(right) in texts:
        return all(compare(bound, value) is not held for value in values)
    return False


def _number(node: exp.Expr) -> float | None:
    """The number, if one is written."""
    node = _bare(node)
    if isinstance(node, exp.Neg):
        inner = _number(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.TryCast):
        node = node.this
    if not isinstance(node, exp.Literal):
        return None
    try:
        return None if node.is_string else float(node.name)
    except ValueError:
        return None


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _text(node: exp.Expr) -> str:
    return _bare(node).sql(dialect="spark").lower()
