"""Whether a rule allows more, less or something else than another rule of the same name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tidemill.contracts.conditions import Condition, Rule
from tidemill.core.contract.contract import Between, LengthBetween, OneOf, RowCountBetween
from tidemill.core.contract.row_checks import Bounded, ItemsBetween, NoneOf
from tidemill.core.contract.tolerance import Tolerance

_BOUNDED = Between | LengthBetween | RowCountBetween | ItemsBetween
_MOST = ("mustBeLessThan", "mustBeLessOrEqualTo")


def compared(before: Rule, after: Rule) -> str | None:
    """The kind of change (a key of `tidemill.contracts.changes.change.KINDS`); None if both allow the same."""
    conditions = _conditions(before.condition, after.condition)
    tolerances = _tolerances(before.tolerance, after.tolerance)
    # Many rows of a table say nothing about the few of a batch, nor these about them.
    scopes = None if before.scope is after.scope else "rule-changed"
    kinds = {kind for kind in (conditions, tolerances, scopes) if kind is not None}
    if len(kinds) > 1:
        return "rule-changed"
    return next(iter(kinds), None)


def _conditions(before: Condition, after: Condition) -> str | None:
    if before == after:
        return None
    match before, after:
        case (Between(), Between()) | (LengthBetween(), LengthBetween()):
            return _bounds(before, after)
        case (RowCountBetween(), RowCountBetween()) | (ItemsBetween(), ItemsBetween()):
            return _bounds(before, after)
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


def _place(rule: Any, side: str, up: int) -> tuple[float, bool]:
    bound = getattr(rule, side)
    return (float("-inf"), False) if bound is None else (up * bound, bool(getattr(rule, f"exclusive_{side}", False)))


def _sets(old: set[Any], new: set[Any]) -> str | None:
    """Compare two sets of allowed values."""
    if old == new:
        return None
    if old <= new:
        return "rule-weaker"
    return "rule-stricter" if new <= old else "rule-changed"


def _tolerances(before: Tolerance | None, after: Tolerance | None) -> str | None:
    if before == after:
        return None
    if before is None or after is None:
        return "rule-weaker" if before is None else "rule-stricter"
    alike = before.comparison == after.comparison and before.percent == after.percent
    if alike and before.comparison in _MOST:
        return "rule-weaker" if after.numbers > before.numbers else "rule-stricter"
    return "rule-changed"
