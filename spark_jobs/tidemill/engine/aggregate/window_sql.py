"""SQL for partial aggregates of a batch, and for windows merged from panes: `partial`, `merge` and `finish` at work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.contract.schema import Field, Scalar, cast_or_null
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
from tidemill.engine.aggregate.aggregate_sql import beyond, finished_values, merges, partials_of, results, types_of
from tidemill.engine.native.translation import translated
from tidemill.engine.read.fitted import fitted
from tidemill.engine.spark.query import ROWS

SLICE_COLUMNS = ("batch_id", "attempt")

DROPPED = "_dropped"
"""The column that is 1 for a finished row that does not meet a filter, and 0 for others."""

_STALE = "_stale"


def partial_aggregates(rows: DataFrame, sink: WindowedSink) -> DataFrame:
    """One row of state for each pane and key of the sink's rows; the slice columns are still missing."""
    partials = partials_of(sink)
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
    return select(
        [*(renamed(value, c) for c, value in finished_values(sink, window_bounds(sink)).items()), *stale],
        merged,
        where="_fires",
    )


def window_bounds(sink: WindowedSink) -> tuple[str, str]:
    """SQL for start and end of the window that starts at `_start`."""
    return "timestamp_micros(_start)", f"timestamp_micros{_end_of(sink)}"


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


def left_to_spark(sink: WindowedSink, state: Sequence[Field]) -> str:
    """What has to be merged by Spark, although the rows are in the driver; empty where the driver merges them.

    `state` are the columns of a slice of state.
    """
    bounds = ("_start", "_end") if sink.merging else BOUNDS
    flags = {"_touched": Scalar.BOOLEAN, **dict.fromkeys(bounds, Scalar.LONG)}
    columns = (*state, *(Field(name=name, type=of) for name, of in flags.items()))
    found = translated(merged_windows(ROWS, sink), columns)
    return found if isinstance(found, str) else ""


def folded_state(state: str, sink: StatefulSink, types: Sequence[Field], by: Sequence[str]) -> str:
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
