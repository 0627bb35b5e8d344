"""SQL for partial aggregates of a batch, and for windows merged from panes: `partial`, `merge` and `finish` at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.schema import DataType, Field, Scalar, cast_or_null
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.operators import Filter, Select, WithColumns
from tidemill.core.sql.expressions import filled
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.core.time.panes import EvenPanes, OnePane
from tidemill.core.time.sessions import SessionPanes
from tidemill.core.time.window_expressions import (
    BOUNDS,
    NEVER,
    fires_again,
    fires_on_time,
    last_window_end,
    pane_start,
    window_starts,
)
from tidemill.engine.driver.translation import translated
from tidemill.engine.read.fitted import BEYOND, fitted
from tidemill.engine.spark.query import ROWS

SLICE_COLUMNS = ("batch_id", "attempt")

DROPPED = "_dropped"
"""The column that is 1 for a finished row that does not meet a filter, and 0 for others."""

_KEPT, _STALE = "_kept", "_stale"


def _state_columns(name: str, aggregate: Aggregate) -> Mapping[str, str]:
    return {part: f"{name}__{part}" for part in aggregate.triple.partial}


def state_columns(sink: WindowedSink) -> tuple[str, ...]:
    """The columns of state that the aggregates of a sink merge."""
    return tuple(merges(sink))


def merges(sink: WindowedSink) -> Mapping[str, str]:
    """For each column of state, the SQL aggregate that merges several rows."""
    return {
        _state_columns(name, aggregate)[part]: _filled(name, aggregate, text)
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.merge.items()
    }


def partial_aggregates(rows: DataFrame, sink: WindowedSink) -> DataFrame:
    """One row of state for each pane and key of the sink's rows; the slice columns are still missing."""
    partials = {
        _state_columns(name, aggregate)[part]: text
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.partial.items()
    }
    parts = [F.expr(renamed(text, name)) for name, text in partials.items()]
    if isinstance(sink.window.panes, SessionPanes):
        session = F.session_window(F.expr("timestamp_micros(_time)"), f"{sink.window.panes.gap} microseconds")
        grouped = rows.groupBy(session.alias("_session"), *map(quoted, sink.keys)).agg(*parts)
        start, end = "_session.start", "_session.end"
    else:
        panes = rows.selectExpr("*", renamed(pane_start(sink.window.panes, "_time"), "_pane"))
        grouped = panes.groupBy("_pane", *map(quoted, sink.keys)).agg(*parts)
        start, end = "timestamp_micros(_pane)", f"timestamp_micros({last_window_end(sink.window.panes, '_pane')})"
    pane = {"pane_day": f"CAST({start} AS DATE)", "pane_start": start, "pane_end": end}
    columns = [renamed(pane[name], name) for name in sink.pane_columns]
    return grouped.selectExpr(*columns, *map(quoted, [*sink.keys, *partials]))


def merged_windows(state: str, sink: WindowedSink) -> str:
    """A statement over state: the rows to publish, in the types of the contract, and which values do not fit.

    The state has the columns that `finished_windows` needs. If the sink chooses rows, `DROPPED` is 1 for those that do
    not meet its filters but may be published already.
    """
    columns = fitted(sink.computed, beyond(sink))
    if not sink.chooses:
        return select(columns, results(finished_windows(state, sink), sink)[1])
    kept, rows = results(finished_windows(state, sink), sink, carried=[_STALE])
    dropped = renamed(f"CASE WHEN {kept} THEN 0 ELSE 1 END", DROPPED)
    return select([*columns, dropped], rows, where=f"{kept} OR {_STALE}")


def finished_windows(state: str, sink: WindowedSink) -> str:
    """A statement over state: the rows to publish, in the types that Spark gives them.

    The state also has the columns of `Firing.bounds`, and `_touched`, true for rows of this batch. A window that fires
    is merged from all rows of its panes. State of sessions has the bounds of their session instead (`Chain`), and all
    of them fire.
    """
    keys = [quoted(k) for k in sink.keys]
    merged = select(
        [
            "_start",
            *keys,
            renamed(_fires(sink), "_fires"),
            *([renamed(_stale(sink), _STALE)] if sink.chooses else []),
            *([renamed("max(_end)", "_end")] if _has_ends(sink) else []),
            *(renamed(text, name) for name, text in merges(sink).items()),
        ],
        state if sink.merging else _candidates(state, sink),
        group_by=["_start", *sink.keys],
    )
    stale = [_STALE] if sink.chooses else []
    return select([*(renamed(value, c) for c, value in finished_values(sink).items()), *stale], merged, where="_fires")


def _fires(sink: WindowedSink) -> str:
    """SQL for whether a window and key fires, over its rows."""
    if sink.merging:
        return "true"
    if _has_ends(sink):
        return f"({_last_end(fires_on_time)}) OR ({_last_end(fires_again)} AND bool_or(_touched))"
    return "bool_or(_on_time OR (_again AND _touched))"


def _stale(sink: WindowedSink) -> str:
    """SQL for whether a window and key that fires may be published already: it fired before this batch."""
    if sink.merging:
        return "bool_or(_touched) AND bool_or(NOT _touched)"
    if _has_ends(sink):
        return f"NOT ({_last_end(fires_on_time)}) AND bool_or(NOT _touched)"
    return "bool_or(NOT _on_time AND NOT _touched)"


def _has_ends(sink: WindowedSink) -> bool:
    return "pane_end" in sink.pane_columns


def _last_end(fires: Callable[[str], str]) -> str:
    """What `fires` says of the last end that rows of a window have; rules of time zones may have changed meanwhile."""
    text = fires("max(_end)")
    for bound in BOUNDS:
        text = text.replace(bound, f"max({bound})")
    return text


def finished_values(sink: WindowedSink) -> Mapping[str, str]:
    """The columns of `finished_windows`, as SQL over the merged state of the window that starts at `_start`."""
    types, direct = {f.name: f.type for f in sink.contract.fields}, sink.direct
    bounds = ("timestamp_micros(_start)", f"timestamp_micros{_end_of(sink)}")
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


def results(rows: str, sink: WindowedSink, carried: Sequence[str] = ()) -> tuple[str, str]:
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


def left_to_spark(sink: WindowedSink, state: Sequence[Field]) -> str:
    """What has to be merged by Spark, although the rows are in the driver; empty where the driver merges them.

    `state` are the columns of a slice of state.
    """
    bounds = ("_start", "_end") if sink.merging else BOUNDS
    flags = {"_touched": Scalar.BOOLEAN, **dict.fromkeys(bounds, Scalar.LONG)}
    columns = (*state, *(Field(name=name, type=of) for name, of in flags.items()))
    found = translated(merged_windows(ROWS, sink), columns)
    return found if isinstance(found, str) else ""


def beyond(sink: WindowedSink) -> Mapping[str, str]:
    """For each aggregate whose value may exceed its column: SQL for whether it does."""
    fields = [f for f in sink.contract.fields if f.name in sink.direct]
    texts = {f.name: sink.aggregates[f.name].overflowed(f.type) for f in fields}
    return {name: text for name, text in texts.items() if text is not None}


def folded_state(state: str, sink: WindowedSink, types: Sequence[Field], by: Sequence[str]) -> str:
    """A statement over state: one row per key and pane (or node, as the columns `by` say); it can be merged further.

    Columns have the `types` of state; the slice columns are missing.
    """
    of = types_of(sink, types)
    whole = [*by, *sink.keys]
    parts = [renamed(cast_or_null(text, of[name]), name) for name, text in merges(sink).items()]
    return select([*map(quoted, whole), *parts], state, group_by=whole)


def folded_sessions(state: str, sink: WindowedSink, types: Sequence[Field]) -> str:
    """A statement over state that a `Chain` has joined: one row per session and key; it can be merged further."""
    of, start = types_of(sink, types), "timestamp_micros(_start)"
    pane = {"pane_day": f"CAST({start} AS DATE)", "pane_start": start, "pane_end": "timestamp_micros(max(_end))"}
    places = [renamed(pane[name], name) for name in sink.pane_columns]
    parts = [renamed(cast_or_null(text, of[name]), name) for name, text in merges(sink).items()]
    return select([*places, *map(quoted, sink.keys), *parts], state, group_by=["_start", *sink.keys])


def types_of(sink: WindowedSink, types: Sequence[Field]) -> Mapping[str, DataType]:
    """The types of the state columns; `types` has those of the columns that exist in the table."""
    # Older state may lack columns; all columns that were added later are 64-bit integers.
    return {**dict.fromkeys(merges(sink), Scalar.LONG), **{f.name: f.type for f in types}}


def _candidates(state: str, sink: WindowedSink) -> str:
    """A statement: rows of state, once for each of their windows that may fire; with stored ends, all rows."""
    panes, end = sink.window.panes, _end_of(sink)
    if _has_ends(sink):
        return select(["*", "unix_micros(pane_start) AS _start", renamed("unix_micros(pane_end)", "_end")], state)
    opened = select(["*", "unix_micros(pane_start) AS _pane"], state)
    several = isinstance(panes, EvenPanes) and panes.size != panes.pane
    starts = f"explode({window_starts(sink.even_panes, '_pane')})" if several else "_pane"
    windows = select(["*", renamed(starts, "_start")], opened)
    fires = [renamed(fires_on_time(end), "_on_time"), renamed(fires_again(end), "_again")]
    judged = select(["*", *fires], windows)
    return select(["*"], judged, where="_on_time OR _again")


def _end_of(sink: WindowedSink) -> str:
    """SQL for the end of the window that starts at `_start`, in brackets."""
    match sink.window.panes:
        case EvenPanes(size=size):
            return f"(_start + {size}L)"
        case OnePane():
            return f"({NEVER})"
        case _:
            return "(_end)"


def _filled(name: str, aggregate: Aggregate, text: str) -> str:
    return filled(text, _quoted(name, aggregate))


def _quoted(name: str, aggregate: Aggregate) -> dict[str, str]:
    return {part: quoted(column) for part, column in _state_columns(name, aggregate).items()}
