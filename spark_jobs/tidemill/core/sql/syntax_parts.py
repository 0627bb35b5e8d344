"""What single parts of an expression's tree mean."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from tidemill.core.sql.functions import FAILING_UNLESS_WRITTEN, KEEPING_VALUES, WITHOUT_ORDER

_UNIT_INSIDE = re.compile("[A-Za-z]{3}")
UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofyear",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
)
"""The units of functions such as `timestampadd`."""

_COMPARISONS = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=", exp.EQ: "="}


def has_unit(node: exp.Interval) -> bool:
    """Whether an interval is a constant. If not, Spark reads a column `interval`, plus or minus a value."""
    value = node.this
    written = isinstance(value, exp.Literal) and _UNIT_INSIDE.search(value.name) is not None
    return node.args.get("unit") is not None or written


def is_order_lost(node: exp.Expr) -> bool:
    """Whether the expression around an array makes the order of its values irrelevant."""
    parent = node.parent
    while parent is not None and (isinstance(parent, exp.Paren | exp.Filter) or _begins(parent, node, KEEPING_VALUES)):
        node, parent = parent, parent.parent
    if parent is None or not _begins(parent, node, WITHOUT_ORDER):
        return False
    # A comparison function of the user may take different values for equal.
    return parent.name.lower() != "array_sort" or len(parent.expressions) == 1


def _begins(parent: exp.Expr, node: exp.Expr, names: tuple[str, ...]) -> bool:
    """Whether `node` is the first argument of one of these functions."""
    return isinstance(parent, exp.Anonymous) and parent.name.lower() in names and parent.expressions[0] is node


def comparison(tree: exp.Expr) -> tuple[str, str, str] | None:
    """Left column, operator and right column if the tree just compares two columns; None otherwise."""
    sign = next((sign for kind, sign in _COMPARISONS.items() if type(tree) is kind), None)
    sides = [tree.args.get("this"), tree.args.get("expression")]
    names = [side.name for side in sides if isinstance(side, exp.Column) and len(side.parts) == 1]
    return (names[0], sign, names[1]) if sign is not None and len(names) == 2 else None


def is_unit(node: exp.Expr) -> bool:
    """Whether the node is a unit of time, such as `day`."""
    return isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in UNITS


def fails_by_an_argument(name: str, arguments: Sequence[exp.Expr]) -> bool:
    """Whether a function raises an error for some values of an argument that is not written as a constant."""
    # With three arguments or more, it compares values.
    if name == "decode":
        return len(arguments) == 2
    place = FAILING_UNLESS_WRITTEN.get(name)
    return place is not None and len(arguments) > place and not is_written(arguments[place])


def is_written(node: exp.Expr) -> bool:
    """Whether a value is a constant of the text: no record can change it."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    return isinstance(node, exp.Literal | exp.Null | exp.Boolean)
