"""The types of a declaration's columns as the native rules give them: without Spark, and without any rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.contract.schema import Field, Scalar
from tidemill.core.declare.type_checks import check_fits, check_numbers
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.core.time.calendar import CalendarPanes
from tidemill.core.time.window_expressions import BOUNDS
from tidemill.engine.aggregate.aggregate_sql import partials_of, results
from tidemill.engine.aggregate.branches import HIDDEN, Branch, branches_of, columns_of
from tidemill.engine.aggregate.firing_sql import FIRING, OF_FIRING, columns_left, finished_firings, grouped_pieces
from tidemill.engine.aggregate.native_pass import Aggregation
from tidemill.engine.aggregate.native_plan import FOLDED, LeftToSpark, natively, pass_anywhere
from tidemill.engine.aggregate.table_types import check_published, check_state, where_published
from tidemill.engine.aggregate.window_sql import finished_windows, left_to_spark
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.table_layout import Uris
from tidemill.tables.arrow_types import schema_fields

Fields = tuple[Field, ...]


def checked_natively(flow: Flow, uris: Uris) -> bool:
    """Refuse what `check_types` refuses, without Spark; False if only Spark knows the types.

    Raises:
        DeclarationError: values could be lost.
        Incompatible: the state or a published table has columns of other types.
    """
    try:
        known = list(_known(flow))
    except LeftToSpark:
        return False
    for sink, found in known:
        _check(flow, sink, found, uris)
    return True


def merged_by_spark(flow: Flow) -> Mapping[str, str]:
    """The tables whose windows Spark merges, although their rows are few, and what it is that only Spark computes.

    A pattern is looked at as one topic.

    Raises:
        LeftToSpark: only Spark knows the types of their state.
    """
    flow, found = replace(flow, inputs=flow.sources), dict[str, str]()
    for source in flow.sources:
        native = pass_anywhere(flow, source, here=True)
        for (branch, _), aggregation in zip(branches_of(flow, source), native.aggregations, strict=True):
            sink = branch.sink
            if isinstance(sink, WindowedSink) and (reason := left_to_spark(sink, _state_of(sink, aggregation))):
                found[sink.table] = reason
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Types:
    """The columns that aggregates are `over`, those of state, and those to publish, as they are computed."""

    over: Fields = ()
    state: Fields = ()
    published: Fields


def _check(flow: Flow, sink: Sink, found: _Types, uris: Uris) -> None:
    where = where_published(flow, sink)
    columns = sink.contract.columns
    if isinstance(sink, StatefulSink):
        for field in found.over:
            check_numbers(where, field.name, sink.aggregates[field.name], field.type)
        check_state(flow, sink, uris, {field.name: field.type for field in found.state})
        columns = tuple(field.name for field in sink.computed)
    there = {field.name.lower(): field.type for field in found.published}
    for name in columns:
        check_fits(where, name, there[name.lower()], sink.contract)
    check_published(flow, sink, uris)


def _known(flow: Flow) -> Iterator[tuple[Sink, _Types]]:
    """The types of each sink that an input leads to.

    Raises:
        LeftToSpark: only Spark knows some of them, or inputs give a sink different ones.
    """
    seen: dict[str, Fields] = {}
    for source in flow.sources:
        for branch, entering, found in _of_input(flow, source):
            table = branch.sink.table
            if table not in seen:
                seen[table] = entering
                yield branch.sink, found
            elif seen[table] != entering:
                raise LeftToSpark(f"{table}: streams whose columns have different types")


def _of_input(flow: Flow, source: Input) -> Iterator[tuple[Branch, Fields, _Types]]:
    native = pass_anywhere(flow, source, here=True)
    for (branch, _), aggregation in zip(branches_of(flow, source), native.aggregations, strict=True):
        there = native.branched[-1].output
        rows = natively(select(_entering(branch, there), ROWS, where=branch.taken), there).output
        yield branch, rows, _of_sink(branch.sink, rows, aggregation)


def _entering(branch: Branch, there: Fields) -> list[str]:
    """The columns of rows that enter the sink; aggregates of windows may read hidden ones, if these are there."""
    match branch.sink:
        case RowSink():
            return columns_of(branch)
        case WindowedSink():
            known = {field.name for field in there}.difference(branch.columns)
            hidden = [column for column in HIDDEN if column in known]
        case _:
            hidden = []
    return [*hidden, *(renamed(quoted(branch.prefix + column), column) for column in branch.columns)]


def _of_sink(sink: Sink, rows: Fields, aggregation: Aggregation) -> _Types:
    match sink:
        case RowSink():
            return _Types(published=rows)
        case FiringSink():
            return _of_firings(sink, rows, aggregation)
        case WindowedSink():
            return _of_windows(sink, rows, aggregation)
        case _:
            assert_never(sink)


def _of_firings(sink: FiringSink, rows: Fields, aggregation: Aggregation) -> _Types:
    left = columns_left(sink, [*HIDDEN, *(field.name for field in rows)])
    pieces = natively(grouped_pieces(sink), (*(f for f in aggregation.given.output if f.name in left), *FOLDED))
    state = _named(pieces.output, [*sink.keys, *partials_of(sink)])
    firings = (Field(name=FIRING, type=Scalar.LONG), *schema_fields(pa.schema(OF_FIRING)))
    published = natively(finished_firings(ROWS, sink)[1], (*state, *firings)).output
    return _Types(over=_over(sink, aggregation.given.output), state=state, published=published)


def _state_of(sink: WindowedSink, aggregation: Aggregation) -> Fields:
    """The columns of a slice of state."""
    pane = {"pane_day": Scalar.DATE, "pane_start": Scalar.TIMESTAMP, "pane_end": Scalar.TIMESTAMP}
    there = _named(aggregation.given.output, [*sink.keys, *partials_of(sink)])
    return (*(Field(name=name, type=pane[name]) for name in sink.pane_columns), *there)


def _of_windows(sink: WindowedSink, rows: Fields, aggregation: Aggregation) -> _Types:
    if isinstance(sink.window.panes, CalendarPanes):
        raise LeftToSpark(f"{sink.table}: whether Java knows the time zone")
    state = _state_of(sink, aggregation)
    bounds = ("_start", "_end") if sink.merging else BOUNDS
    firing = {"_touched": Scalar.BOOLEAN, **dict.fromkeys(bounds, Scalar.LONG)}
    _, text = results(finished_windows(ROWS, sink), sink)
    published = natively(text, (*state, *(Field(name=name, type=of) for name, of in firing.items()))).output
    return _Types(over=_over(sink, rows), state=state, published=published)


def _over(sink: StatefulSink, entering: Fields) -> Fields:
    """The types of what aggregates are over."""
    over = {name: a.over[0] for name, a in sink.aggregates.items() if a.over and a.over[0] != "*"}
    columns = [renamed(f"({text})", f"_over_{name}") for name, text in over.items()]
    found = natively(select(columns, ROWS), entering).output if over else ()
    return tuple(replace(field, name=name) for field, name in zip(found, over, strict=True))


def _named(fields: Fields, names: Sequence[str]) -> Fields:
    return tuple(field for field in fields if field.name in names)
