"""SQL that merges windows from nodes of the pane tree, and builds the nodes of a batch, in one statement.

It does for rows, in SQL, what `PaneTree.window_starts` and `PaneTree.grown` do for one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.schema import Field, cast_or_null
from tidemill.core.sql.text import quoted, renamed, select
from tidemill.core.time.pane_tree import levels_of
from tidemill.core.time.window_expressions import fires_again, fires_on_time
from tidemill.engine.aggregate.aggregate_sql import (
    beyond,
    finished_values,
    merges,
    results,
    state_columns,
    types_of,
)
from tidemill.engine.aggregate.window_sql import window_bounds
from tidemill.engine.read.fitted import fitted
from tidemill.engine.storage.spread import CERTAIN, LEVEL, START, TOUCHED

_NODE = "_node_"
_LEVELS = 16
"""Windows and nodes are encoded as one number, start * 16 + level: there are at most 13 levels."""


def merged_nodes(rows: str, sink: WindowedSink, types: Sequence[Field]) -> str:
    """A statement over rows of `spread_rows`: the windows to publish, at `_level` 0, and the nodes to write.

    Windows have the columns of `merged_windows`, nodes those of `node_columns`, in the `types` of state; the other
    columns are null.
    """
    keys = [quoted(k) for k in sink.keys]
    built = select(
        [
            *(LEVEL, START),
            *keys,
            renamed(f"bool_or({CERTAIN} OR {TOUCHED})", "_fires"),
            renamed(f"bool_or({TOUCHED})", TOUCHED),
            *(renamed(text, name) for name, text in merges(sink).items()),
        ],
        rows,
        group_by=[LEVEL, START, *sink.keys],
    )
    of = types_of(sink, types)
    windows = {
        c: f"CASE WHEN {LEVEL} = 0 THEN {value} END" for c, value in finished_values(sink, window_bounds(sink)).items()
    }
    parts = {_NODE + c: f"CASE WHEN {LEVEL} > 0 THEN {cast_or_null(quoted(c), of[c])} END" for c in of_nodes(sink)}
    start = {_NODE + "pane_start": "timestamp_micros(_start)", _NODE + "pane_level": LEVEL}
    columns = {**windows, **start, **parts}
    made = select([LEVEL, TOUCHED, *(renamed(v, c) for c, v in columns.items())], built, where="_fires")
    _, made = results(made, sink, carried=[LEVEL, TOUCHED, *node_columns(sink)])
    whole = [*fitted(sink.computed, beyond(sink)), *map(quoted, node_columns(sink))]
    return select([LEVEL, TOUCHED, *whole], made)


def of_nodes(sink: WindowedSink) -> Sequence[str]:
    """The columns that both rows of state and nodes have, without pane and slice."""
    return [*sink.keys, *state_columns(sink)]


def node_columns(sink: WindowedSink) -> Mapping[str, str]:
    """The columns of a node, by their names in `merged_nodes`."""
    return {_NODE + c: c for c in ("pane_level", "pane_start", *of_nodes(sink))}


def spread_rows(state: str, sink: WindowedSink) -> str:
    """A statement over rows of state and nodes: each row once per window that may fire and per node to build.

    The input also has the columns of `Ahead.bounds`; `_touched`, true for rows of this batch; and `_alone`, true for
    rows that no node holds yet.
    """
    panes = sink.even_panes
    made = select(["*", renamed(f"explode({_made(sink)})", "_made")], _placed(state, sink))
    start, level = f"shiftright(_made, {_LEVELS.bit_length() - 1})", f"CAST(_made & {_LEVELS - 1}L AS INT)"
    known = select(["*", renamed(start, START), renamed(level, LEVEL)], made, where="_made IS NOT NULL")
    end = f"(_start + {panes.size}L)"
    fires = [renamed(fires_on_time(end), "_on_time"), renamed(fires_again(end), "_again")]
    judged = select(["*", *fires], known)
    certain = renamed(f"{LEVEL} > 0 OR _on_time", CERTAIN)
    columns = [*map(quoted, of_nodes(sink)), TOUCHED, LEVEL, START, certain]
    return select(columns, judged, where=f"{LEVEL} > 0 OR _on_time OR _again")


def _placed(state: str, sink: WindowedSink) -> str:
    """The rows with `_low` and `_high`, between which the windows start that take a row (`PaneTree.window_starts`)."""
    panes, levels = sink.even_panes, levels_of(sink.even_panes)
    length = f"shiftleft({panes.pane}L, pane_level)"
    placed = select(["*", renamed("unix_micros(pane_start)", "_pane"), renamed(length, "_length")], state)
    parent = f"_pane - pmod(_pane - {panes.offset}L, 2L * _length)"
    above = f"NOT _alone AND pane_level < {levels} AND _parent >= _since AND _parent + 2L * _length <= _built"
    judged = select(["*", renamed(above, "_above")], select(["*", renamed(parent, "_parent")], placed))
    low = f"CASE WHEN _above AND _parent < _pane THEN _parent + 1L ELSE _pane + _length - {panes.size}L END"
    high = f"CASE WHEN _above AND _parent = _pane THEN _pane + 2L * _length - {panes.size + 1}L ELSE _pane END"
    bounded = select(
        ["*", renamed(f"greatest({low}, _first)", "_least"), renamed(f"least({high}, _last)", "_high")], judged
    )
    aligned = f"_least + pmod({panes.offset}L - _least, {panes.slide}L)"
    return select(["*", renamed(f"CASE WHEN _least <= _high THEN {aligned} END", "_low")], bounded)


def _made(sink: WindowedSink) -> str:
    """An SQL expression: an array of the windows and nodes that a row of `_placed` belongs to; nulls count as none."""
    panes, levels = sink.even_panes, levels_of(sink.even_panes)
    steps = f"_low * {_LEVELS}L, _high * {_LEVELS}L, {panes.slide * _LEVELS}L"
    windows = f"CASE WHEN _low <= _high THEN sequence({steps}) ELSE array(CAST(NULL AS BIGINT)) END"
    nodes = ", ".join(_grown(panes.pane << level, panes.offset, level) for level in range(1, levels + 1))
    grows = f"pane_level < {levels} AND (_alone OR (NOT _above AND _until > _built))"
    return f"CASE WHEN {grows} THEN concat({windows}, array({nodes})) ELSE {windows} END"


def _grown(length: int, offset: int, level: int) -> str:
    start = f"(_pane - pmod(_pane - {offset}L, {length}L))"
    end = f"{start} + {length}L"
    wanted = f"pane_level < {level} AND {start} >= _since AND {end} <= _until AND (_alone OR {end} > _built)"
    return f"CASE WHEN {wanted} THEN {start} * {_LEVELS}L + {level}L END"
