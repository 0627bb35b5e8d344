"""Whether a rule allows more, less or something else than another rule of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tidemill.contracts.conditions import Condition, Rule
from tidemill.contracts.outcomes import of_count
from tidemill.core.contract.contract import Between, Expectation, LengthBetween, OneOf, RowCountBetween
from tidemill.core.contract.long_number import fraction_of
from tidemill.core.contract.row_checks import Bounded, ItemsBetween, MultipleOf, NoneOf
from tidemill.core.contract.tolerance import Tolerance

_MOST = ("mustBeLessThan", "mustBeLessOrEqualTo")
_NO_ROW = Tolerance(comparison="mustBe", numbers=(0,))
_ENDS = ("min_value", "max_value", "strict_min", "strict_max")
_AMONG, _CONTAINS = (f"expect_column_distinct_values_to_{what}_set" for what in ("be_in", "contain"))


def compared(before: Rule, after: Rule) -> str | None:
    """The kind of change (a key of `tidemill.contracts.changes.change.KINDS`); None if both allow the same."""
    old, new = before.condition, after.condition
    if isinstance(old, RowCountBetween) and isinstance(new, RowCountBetween):
        found = {_counts(old, new, before.tolerance, after.tolerance)}
    else:
        found = {_conditions(old, new), _tolerances(before.tolerance, after.tolerance)}
        # More bad rows than before: nobody can tell what that means to a rule that does not limit them.
        limited = all(t is None or t.comparison in _MOST for t in (before.tolerance, after.tolerance))
        found |= set() if limited or _conditions(old, new) is None else {"rule-changed"}
    # Many rows of a table say nothing about the few of a batch, nor these about them.
    found |= set() if before.scope is after.scope else {"rule-changed"}
    kinds = found - {None}
    return "rule-changed" if len(kinds) > 1 else next(iter(kinds), None)


def _conditions(before: Condition, after: Condition) -> str | None:
    if before == after:
        return None
    match before, after:
        case (Between(), Between()) | (LengthBetween(), LengthBetween()) | (ItemsBetween(), ItemsBetween()):
            return _bounds(before, after)
        case MultipleOf(column=column, factor=old), MultipleOf(factor=new) if column == after.column:
            return _factors(Fraction(str(old)), Fraction(str(new)))
        case Expectation(), Expectation() if (before.column, before.kind) == (after.column, after.kind):
            return _statistics(before.kind, dict(before.arguments), dict(after.arguments))
        case OneOf(column=column, values=old), OneOf(values=new) if column == after.column:
            return _sets(set(old), set(new))
        case NoneOf(column=column, values=old), NoneOf(values=new) if (column, before.null_too) == (
            after.column,
            after.null_too,
        ):
            return _sets(set(new), set(old))
        case Bounded(operator=sign), Bounded() if (before.column, sign[0]) == (after.column, after.operator[0]):
            old, new = ((each.bound, "=" not in each.operator) for each in (before, after))
            # Of two rules with the same day, the one that leaves the day itself out allows less.
            less = new[1] if old[0] == new[0] else (new[0] > old[0]) is (sign[0] == ">")
            return "rule-stricter" if less else "rule-weaker"
        case _:
            return "rule-changed"


def _bounds(before: Any, after: Any) -> str:
    """Compare two ranges of the same kind; None is no bound, and an excluded bound allows less."""
    same = {"minimum": None, "maximum": None, **_excluding(before, False), **_excluding(after, False)}
    if replace(before, **same) != replace(after, **same):
        return "rule-changed"
    sides = {_side(before, after, "minimum", 1), _side(before, after, "maximum", -1)} - {0}
    return "rule-changed" if len(sides) != 1 else ("rule-stricter" if sides == {1} else "rule-weaker")


def _excluding(rule: Any, value: bool) -> dict[str, bool]:
    return {"exclusive_minimum": value, "exclusive_maximum": value} if isinstance(rule, Between) else {}


def _side(before: Any, after: Any, side: str, up: int) -> int:
    """1 if the new bound allows less, -1 if it allows more, 0 if it is the same."""
    old, new = _place(before, side, up), _place(after, side, up)
    return (new > old) - (new < old)


def _place(rule: Any, side: str, up: int) -> tuple[Fraction | float, bool]:
    bound = getattr(rule, side)
    return (
        (float("-inf"), False)
        if bound is None
        else (up * fraction_of(bound), bool(getattr(rule, f"exclusive_{side}", False)))
    )


def _sets(old: set[Any], new: set[Any]) -> str | None:
    """Compare two sets of allowed values."""
    if old == new:
        return None
    if old <= new:
        return "rule-weaker"
    return "rule-stricter" if new <= old else "rule-changed"


def _factors(old: Fraction, new: Fraction) -> str:
    """Every multiple of 10 is one of 5."""
    if not new % old:
        return "rule-stricter"
    return "rule-changed" if old % new else "rule-weaker"


def _statistics(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Compare the arguments of two expectations of the same kind about the same column."""
    if kind in (_AMONG, _CONTAINS):
        first, second = (set(v) if isinstance(v := each["value_set"], tuple) else {v} for each in (old, new))
        return _sets(first, second) if kind == _AMONG else _sets(second, first)
    if any(old.get(name) != new.get(name) for name in old.keys() | new.keys() if name not in _ENDS):
        return "rule-changed"
    ends = [_end(old, new, "min", above=True), _end(old, new, "max", above=False)]
    sides = {end for end in ends if end is not None}
    return "rule-changed" if len(sides) > 1 else next(iter(sides), None)


def _end(old: Mapping[str, Any], new: Mapping[str, Any], side: str, *, above: bool) -> str | None:
    """What one bound of a statistic allows; `above` if it is the least value."""
    was, now = old.get(f"{side}_value"), new.get(f"{side}_value")
    stricts = [bool(each.get(f"strict_{side}")) for each in (old, new)]
    if was is None or now is None:
        return None if was is now else "rule-stricter" if was is None else "rule-weaker"
    if was == now:
        return None if stricts[0] is stricts[1] else "rule-stricter" if stricts[1] else "rule-weaker"
    if isinstance(was, str) is not isinstance(now, str):
        return "rule-changed"
    return "rule-stricter" if (now > was) is above else "rule-weaker"


def _counts(
    before: RowCountBetween, after: RowCountBetween, first: Tolerance | None, second: Tolerance | None
) -> str | None:
    """Compare the numbers of rows that two rules allow."""
    ends = [n for check in (before, after) for n in (check.minimum, check.maximum) if n is not None]
    numbers = [*ends, *(n for tolerance in (first, second) if tolerance for n in tolerance.numbers)]
    points = [int(n) for n in replace(_NO_ROW, numbers=tuple(numbers)).points()]
    old, new = (
        {n for n in points if of_count(check, n, tolerance).passed}
        for check, tolerance in ((before, first), (after, second))
    )
    return _sets(old, new)


def _tolerances(before: Tolerance | None, after: Tolerance | None) -> str | None:
    """Compare the numbers, or the shares, of bad rows that two rules allow."""
    old = before or replace(_NO_ROW, percent=after is not None and after.percent)
    new = after or replace(_NO_ROW, percent=old.percent)
    if old.percent is not new.percent:
        return "rule-changed"
    points = replace(old, numbers=(*old.numbers, *new.numbers)).points()
    first, second = ({n for n in points if each.allows(n, 100)} for each in (old, new))
    return _sets(first, second)
