"""The types of columns that are certain without Spark.

Spark has the last word (`tidemill.engine.aggregate.types`), before a declaration runs for the first time. The types
here are known as soon as declaration and contracts are joined: those of contract columns, of casts, and of aggregates
of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.fitting import Fit, fit, united
from tidemill.core.contract.schema import Array, DataType, Decimal, Scalar, spark_type
from tidemill.core.declare import aggregates as agg
from tidemill.core.declare import operators as op
from tidemill.core.declare import sketches
from tidemill.core.declare.graph import Graph
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import named_alone

Types = Mapping[str, DataType | None]
"""The types of columns by their names in lower case; None where only Spark knows."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A type that only Spark has and no contract can name, by its name in Spark."""

    name: str


Found = Mapping[str, DataType | Foreign | None]
"""The types of columns by their names, including types that only Spark has; None where the type is not known."""

_RECORD: Types = {
    "_topic": Scalar.STRING,
    "_partition": Scalar.INTEGER,
    "_offset": Scalar.LONG,
    "_timestamp": Scalar.TIMESTAMP,
    "_time": Scalar.LONG,
    "_extra": Scalar.STRING,
}
_OF_NUMBERS = (agg.Sum, agg.Average, agg.Variance, agg.StdDev, sketches.Quantiles)


def types_by_operator(graph: Graph, contracts: Mapping[str, Contract]) -> Mapping[str, Types]:
    """The types of the columns that leave each operator."""
    found: dict[str, Types] = {}
    for name in graph.in_order():
        before = [found[edge.source] for edge in graph.feeding(name)]
        found[name] = _leaving(graph.where(name), graph.operators[name], before, contracts)
    return found


def _leaving(where: str, operator: op.Operator, before: list[Types], contracts: Mapping[str, Contract]) -> Types:
    match operator:
        case op.Read():
            return {**_RECORD, **{f.name.lower(): f.type for f in contracts[operator.contract].fields}}
        case op.Union():
            for other in before[1:]:
                check_united(where, before[0], other)
            return {c: t if all(other.get(c) == t for other in before) else None for c, t in before[0].items()}
        case op.WithColumns(added):
            return {**before[0], **{c.lower(): type_of(text, before[0]) for c, text in added.items()}}
        case op.AggregateBy(aggregates):
            own = {name: aggregated(where, name, aggregate, before[0]) for name, aggregate in aggregates.items()}
            return {**before[0], **own}
        case _:
            return before[0]


def type_of(expression: str, types: Types) -> DataType | None:
    """The type of an expression over columns of these types; None where it is not certain."""
    column = named_alone(expression)
    return None if column is None else types.get(column.lower())


def aggregated(where: str, name: str, aggregate: agg.Aggregate, types: Types) -> DataType | None:
    """The type of an aggregate's values; None where it is not certain.

    Raises:
        DeclarationError: it aggregates numbers, but its expression certainly is not a number.
    """
    of = type_of(aggregate.over[0], types) if aggregate.over else None
    if of is not None:
        check_numbers(where, name, aggregate, of)
    return _result(aggregate, of)


def check_united(where: str, one: Found, other: Found) -> None:
    """Refuse to merge streams if Spark would change or lose values of a column to give it one type.

    Raises:
        DeclarationError: the text names the column and both types.
    """
    for column, a in one.items():
        b = other.get(column)
        if a is None or b is None or a == b:
            continue
        if not isinstance(a, Foreign) and not isinstance(b, Foreign) and united(a, b):
            continue
        raise DeclarationError(
            f"{where} merges streams whose `{column}` is {_shown(a)} in one and {_shown(b)} in another: values would "
            "be lost or changed",
            fix="convert one of them before, with an expression of your own in with_columns",
        )


def check_numbers(where: str, name: str, aggregate: agg.Aggregate, of: DataType) -> None:
    """Refuse an aggregate of numbers whose expression has another type.

    Raises:
        DeclarationError: the expression is not a number.
    """
    if isinstance(aggregate, _OF_NUMBERS) and not _is_number(of):
        raise DeclarationError(
            f"{where}: `{name}` is {type(aggregate).__name__} of `{aggregate.over[0]}`, which is {spark_type(of)} and "
            "no number",
            fix="convert it, for example with try_cast(... AS double)",
        )


def _result(aggregate: agg.Aggregate, of: DataType | None) -> DataType | None:
    match aggregate:
        case agg.Count() | agg.CountIf() | sketches.ApproxDistinct() | sketches.Distinct():
            return Scalar.LONG
        case agg.Average() | agg.Variance() | agg.StdDev():
            return Scalar.DOUBLE
        case sketches.Quantiles():
            return Array(Scalar.DOUBLE)
        case agg.Sum():
            return Scalar.LONG if of is Scalar.INTEGER else _wider(of)
        case agg.Min() | agg.Max() | sketches.First() | sketches.Last():
            return of
        case sketches.Collect():
            return None if of is None else Array(of)
        case _:
            return None


def _shown(found: DataType | Foreign) -> str:
    return found.name if isinstance(found, Foreign) else spark_type(found)


def _wider(of: DataType | None) -> DataType | None:
    return Decimal(min(of.precision + 10, 38), of.scale) if isinstance(of, Decimal) else of


def _is_number(data_type: DataType) -> bool:
    return isinstance(data_type, Decimal) or data_type in (Scalar.INTEGER, Scalar.LONG, Scalar.DOUBLE)


def check_fits(where: str, column: str, found: DataType | Foreign, contract: Contract) -> None:
    """Refuse values of a type that a contract's column cannot hold without loss.

    Raises:
        DeclarationError: the text names both types, the operator's line and the contract.
    """
    wanted = next(f.type for f in contract.fields if f.name == column)
    if not isinstance(found, Foreign) and fit(found, wanted) is not Fit.LOSES:
        return
    shown = _shown(found)
    there = contract.source or contract.name
    raise DeclarationError(
        f"{where}: `{column}` is {shown}, but the contract says {spark_type(wanted)} for it ({there}): values would "
        "be lost or changed",
        fix=f"give `{column}` the type {shown} in the contract, or convert it with an expression of your own; where "
        "the table is there already, `tidemill rebuild` makes it anew",
    )
