"""SQL for the aggregates of a sink, whatever windows they are over: their parts, and what is published of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.contract.schema import DataType, Field, Scalar
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.sql.expressions import filled
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.engine.read.fitted import BEYOND

_KEPT = "_kept"


def _state_columns(name: str, aggregate: Aggregate) -> Mapping[str, str]:
    return {part: f"{name}__{part}" for part in aggregate.triple.partial}


def state_columns(sink: StatefulSink) -> tuple[str, ...]:
    """The columns of state that the aggregates of a sink merge."""
    return tuple(merges(sink))


def merges(sink: StatefulSink) -> Mapping[str, str]:
    """For each column of state, the SQL aggregate that merges several rows."""
    return {
        _state_columns(name, aggregate)[part]: _filled(name, aggregate, text)
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.merge.items()
    }


def partials_of(sink: StatefulSink) -> Mapping[str, str]:
    """For each column of state, the SQL aggregate over rows that makes it."""
    return {
        _state_columns(name, aggregate)[part]: text
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.partial.items()
    }


def beyond(sink: StatefulSink) -> Mapping[str, str]:
    """For each aggregate whose value may exceed its column: SQL for whether it does."""
    fields = [f for f in sink.contract.fields if f.name in sink.direct]
    texts = {f.name: sink.aggregates[f.name].overflowed(f.type) for f in fields}
    return {name: text for name, text in texts.items() if text is not None}


def finished_values(sink: StatefulSink, bounds: Sequence[str]) -> Mapping[str, str]:
    """The columns of finished rows, as SQL over merged state; `bounds` are start and end of the window."""
    types, direct = {f.name: f.type for f in sink.contract.fields}, sink.direct
    values = {
        **dict(zip(sink.bounds, bounds, strict=False)),
        **{k: quoted(k) for k in sink.keys},
        **{
            name: _filled(name, a, a.finish_as(types[name]) if name in direct else a.triple.finish)
            for name, a in sink.aggregates.items()
        },
    }
    over = {BEYOND + name: _filled(name, sink.aggregates[name], text) for name, text in beyond(sink).items()}
    published = [f.name for f in sink.computed] if not sink.results else list(values)
    return {**{name: values[name] for name in published}, **over}


def results(rows: str, sink: StatefulSink, carried: Sequence[str] = ()) -> tuple[str, str]:
    """A statement over finished rows after the steps that follow `aggregate`, and SQL for whether a row is kept.

    Columns are computed only for rows that are kept so far. `carried` are other columns of the rows, which stay.
    """
    if not sink.results:
        return "true", rows
    names = [*sink.bounds, *sink.keys, *sink.aggregates]
    others = [*map(quoted, carried), *(quoted(BEYOND + name) for name in beyond(sink))]
    text = select([*map(quoted, names), *others, renamed("true", _KEPT)], rows)
    for step in sink.results:
        made, kept = {name: quoted(name) for name in names}, _KEPT
        match step:
            case Filter(predicate):
                kept = f"{_KEPT} AND coalesce(({predicate}), false)"
            case WithColumns(columns):
                known = {name.lower(): name for name in names}
                made |= {known.get(n.lower(), n): f"CASE WHEN {_KEPT} THEN ({e}) END" for n, e in columns.items()}
            case Select(columns):
                made = {name: quoted(name) for name in columns}
        names = list(made)
        text = select([*(renamed(value, c) for c, value in made.items()), *others, renamed(kept, _KEPT)], text)
    return _KEPT, text


def types_of(sink: StatefulSink, types: Sequence[Field]) -> Mapping[str, DataType]:
    """The types of the state columns; `types` has those of the columns that exist in the table."""
    # Older state may lack columns; all columns that were added later are 64-bit integers.
    return {**dict.fromkeys(merges(sink), Scalar.LONG), **{f.name: f.type for f in types}}


def _filled(name: str, aggregate: Aggregate, text: str) -> str:
    return filled(text, _quoted(name, aggregate))


def _quoted(name: str, aggregate: Aggregate) -> dict[str, str]:
    return {part: quoted(column) for part, column in _state_columns(name, aggregate).items()}
