"""Aggregates, each a triple of Spark SQL expressions: partial, merge, finish.

*partial* turns the rows of one batch, pane and key into state columns; *merge* joins the state columns of several
panes or batches; *finish* turns merged state into the value that is published. State may be merged in any order and
any grouping. In `merge` and `finish`, `{name}` stands for the state column `name`.

Expressions are text: a declaration needs no Spark, can be printed, compared and hashed, and is the only definition of
an aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.declare.sums import Overflow, Sum
from tidemill.core.declare.triples import Aggregate, Triple, single

__all__ = [
    "Aggregate",
    "Average",
    "Count",
    "CountIf",
    "Custom",
    "Max",
    "Min",
    "Overflow",
    "StdDev",
    "Sum",
    "Triple",
    "Variance",
    "single",
]


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """How many rows; with an expression, how many rows where it is not null.

    Args:
        expression: Spark SQL over one row; `*` counts every row.
    """

    expression: str = "*"

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"count({self.expression})", "sum({value})")


@dataclass(frozen=True, slots=True)
class CountIf(Aggregate):
    """How many rows meet a predicate.

    Args:
        predicate: Spark SQL over one row that gives true, false or null; null does not count.
    """

    predicate: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"count_if({self.predicate})", "sum({value})")


@dataclass(frozen=True, slots=True)
class Min(Aggregate):
    """The least value; null when there is no value.

    Args:
        expression: Spark SQL over one row, of a type that has an order.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"min({self.expression})", "min({value})")


@dataclass(frozen=True, slots=True)
class Max(Aggregate):
    """The greatest value; null when there is no value.

    Args:
        expression: Spark SQL over one row, of a type that has an order.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return single(f"max({self.expression})", "max({value})")


@dataclass(frozen=True, slots=True)
class Average(Aggregate):
    """The arithmetic mean as a double, from a sum and a count; null when there is no value.

    Args:
        expression: Spark SQL over one row that gives a number.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        value = f"try_cast({self.expression} AS DOUBLE)"
        return Triple(
            partial={"sum": f"sum({value})", "n": f"count({value})"},
            merge={"sum": "sum({sum})", "n": "sum({n})"},
            finish="try_divide({sum}, {n})",
        )


def _moments(expression: str, finish: str) -> Triple:
    value = f"try_cast({expression} AS DOUBLE)"
    return Triple(
        partial={"sum": f"sum({value})", "squares": f"sum({value} * {value})", "n": f"count({value})"},
        merge={"sum": "sum({sum})", "squares": "sum({squares})", "n": "sum({n})"},
        finish=finish,
    )


_VARIANCE = "CASE WHEN {n} > 1 THEN greatest(({squares} - {sum} * {sum} / {n}) / ({n} - 1), 0D) END"


@dataclass(frozen=True, slots=True)
class Variance(Aggregate):
    """The sample variance (divisor n - 1) from sums; null for fewer than two values.

    Sums of squares lose digits when the mean is many orders of magnitude above the deviation. Then subtract a constant
    in the expression.

    Args:
        expression: Spark SQL over one row that gives a number.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return _moments(self.expression, _VARIANCE)


@dataclass(frozen=True, slots=True)
class StdDev(Aggregate):
    """The sample standard deviation: the square root of `Variance`.

    Args:
        expression: Spark SQL over one row that gives a number.
    """

    expression: str

    @property
    def triple(self) -> Triple:  # noqa: D102
        return _moments(self.expression, f"sqrt({_VARIANCE})")


@dataclass(frozen=True, slots=True)
class Custom(Aggregate):
    """An aggregate of your own, as three steps of Spark SQL.

    For example, a product of positive numbers:
    `Custom(partial={"logs": "sum(ln(x))"}, merge={"logs": "sum({logs})"}, finish="exp({logs})")`.

    Args:
        partial: from the rows of a batch to state: a name and an aggregate expression for each state column.
        merge: from rows of state to one: an aggregate expression for each state column. `{name}` is the column `name`.
            The result must not depend on the order or grouping of what is merged.
        finish: from merged state to the published value: an expression in which `{name}` is the state column `name`.

    Raises:
        DeclarationError: `partial` and `merge` have different state columns, or none; or something is of another type.
    """

    partial: Mapping[str, str]
    merge: Mapping[str, str]
    finish: str

    def __post_init__(self) -> None:
        _ = self.triple

    @property
    def triple(self) -> Triple:  # noqa: D102
        return Triple(partial=self.partial, merge=self.merge, finish=self.finish)
