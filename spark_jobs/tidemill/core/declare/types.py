"""The types of columns that are certain without Spark, and what is refused because of them.

Spark has the last word (`tidemill.engine.aggregate.types`), before a declaration runs for the first time. The types
here are known as soon as declaration and contracts are joined: those of contract columns, of many expressions over them
(`tidemill.core.contract.expression_types`), and of aggregates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import Array, DataType, Decimal, Object, Scalar
from tidemill.core.declare import aggregates as agg
from tidemill.core.declare import bitmaps, sketches
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import ALL_ROWS
from tidemill.core.declare.graph import Graph
from tidemill.core.declare.names import told
from tidemill.core.declare.type_checks import check_numbers, check_united
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.expressions import columns_of

if TYPE_CHECKING:
    from tidemill.core.contract.known_types import Known

Types = Mapping[str, DataType | None]
"""The types of columns by their names in lower case; None where only Spark knows."""

_Found = Mapping[str, "Known"]
"""The same, but of some columns it is only known that they are numbers."""


_RECORD: Types = {
    "_topic": Scalar.STRING,
    "_partition": Scalar.INTEGER,
    "_offset": Scalar.LONG,
    "_timestamp": Scalar.TIMESTAMP,
    "_time": Scalar.LONG,
    "_extra": Scalar.STRING,
}


def types_by_operator(graph: Graph, contracts: Mapping[str, Contract]) -> Mapping[str, Types]:
    """The types of the columns that leave each operator.

    Raises:
        DeclarationError: an expression certainly converts a text, or is no condition where one is expected; or an
            aggregate of numbers is over something else. The text names the operator and the line.
    """
    found: dict[str, _Found] = {}
    for name in graph.in_order():
        before = [found[edge.source] for edge in graph.feeding(name)]
        found[name] = _leaving(graph.where(name), graph.operators[name], before, contracts)
    return {name: {c: _exact(known) for c, known in types.items()} for name, types in found.items()}


def _leaving(where: str, operator: op.Operator, before: list[_Found], contracts: Mapping[str, Contract]) -> _Found:
    match operator:
        case op.Read():
            read = {**_RECORD, **{f.name.lower(): f.type for f in contracts[operator.contract].fields}}
            _check_watermark(f"{where}: watermark", operator.watermark, read)
            return read
        case op.Union():
            exact = [{c: _exact(known) for c, known in types.items()} for types in before]
            for other in exact[1:]:
                check_united(where, exact[0], other)
            return {c: t if all(other.get(c) == t for other in before) else None for c, t in before[0].items()}
        case op.Filter(predicate):
            _check_predicate(where, predicate, before[0])
        case op.Split(routes=routes):
            for port, predicate in routes.items():
                _check_predicate(f"{where}: `{port}`", predicate, before[0])
        case op.WithColumns(added):
            own = {c.lower(): _type_of(f"{where}: `{c}`", text, before[0]) for c, text in added.items()}
            return {**before[0], **own}
        case op.WindowBy():
            return {**before[0], **{c.lower(): Scalar.TIMESTAMP for c in operator.columns}}
        case op.AggregateBy(aggregates):
            return {**before[0], **{n: _aggregated(where, n, a, before[0]) for n, a in aggregates.items()}}
        case _:
            pass
    return before[0]


def _exact(known: Known) -> DataType | None:
    """The type, if more is known than that it is a number."""
    return known if isinstance(known, Scalar | Decimal | Array | Object) else None


def _type_of(where: str, expression: str, types: _Found, *, aggregates: bool = False) -> Known:
    # Imported late: it loads the SQL parser.
    from tidemill.core.contract.implicit_casts import checked_type

    with told(where):
        return checked_type(expression, types, aggregates=aggregates)


def _check_watermark(where: str, expression: str | None, types: _Found) -> None:
    if expression is None:
        return
    of = _type_of(where, expression, types)
    if not columns_of(expression):
        raise DeclarationError(
            f"{where}: `{expression}` is the same for every record, so it can never move", fix="name a column in it"
        )
    if of not in (None, Scalar.TIMESTAMP):
        raise DeclarationError(
            f"{where}: `{expression}` is {of}, expected a timestamp",
            fix='write for example watermark="ts - INTERVAL 10 SECONDS"',
        )


def _check_predicate(where: str, predicate: str, types: _Found) -> None:
    from tidemill.core.contract.implicit_casts import check_predicate

    with told(where):
        check_predicate(predicate, types)


def _aggregated(where: str, name: str, aggregate: agg.Aggregate, types: _Found) -> DataType | None:
    """The type of an aggregate's values; None where it is not certain."""
    place = f"{where}: `{name}`"
    if isinstance(aggregate, agg.CountIf):
        _check_predicate(place, aggregate.predicate, types)
    if not aggregate.over:
        for text in aggregate.triple.partial.values():
            _type_of(place, text, types, aggregates=True)
    over = [text for text in aggregate.over if text != ALL_ROWS]
    of = _exact(_type_of(place, over[0], types)) if over else None
    if of is not None:
        check_numbers(where, name, aggregate, of)
    return _result(aggregate, of)


def _result(aggregate: agg.Aggregate, of: DataType | None) -> DataType | None:
    match aggregate:
        case agg.Count() | agg.CountIf() | sketches.ApproxDistinct() | sketches.Distinct():
            return Scalar.LONG
        case agg.Average() | agg.Variance() | agg.StdDev():
            return Scalar.DOUBLE
        case bitmaps.Bitmap() | bitmaps.BloomFilter():
            return Scalar.BINARY
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


def _wider(of: DataType | None) -> DataType | None:
    return Decimal(min(of.precision + 10, 38), of.scale) if isinstance(of, Decimal) else of
