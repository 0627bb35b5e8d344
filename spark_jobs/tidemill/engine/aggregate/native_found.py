"""What native passes bring back to the driver: counts, side outputs, and state of every table."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.engine.aggregate.counting import GREATEST, Counts, refusals_of
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.native_pass import (
    BLOCKS,
    COUNTS,
    PANE,
    PANE_END,
    PARTLY,
    REFUSED,
    TABLE,
    NativePass,
    unpacked,
)
from tidemill.engine.aggregate.native_runs import Given
from tidemill.engine.aggregate.native_strays import LATE, REJECTED
from tidemill.engine.aggregate.side_outputs import late_of, rejected_of
from tidemill.engine.aggregate.window_sql import folded_state
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows

_log = logging.getLogger("tidemill.engine")
_TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class NativeFound:
    """`counts` by topic; `state` by table: partial aggregates of panes and keys, without the columns of slices.

    `rows` are those that entered tables of rows or of firings.
    """

    counts: Mapping[str, Counts]
    state: Mapping[str, StagedRows]
    rows: Mapping[str, pa.Table]


def found_natively(
    given: Given,
    streams: Sequence[Stream],
    passes: Sequence[NativePass],
    sinks: Sequence[WindowedSink],
    writers: RowWriters,
) -> NativeFound | None:
    """The result of the passes over all streams; None if Spark has to do it all, because one gave up."""
    told = _Told.of(given)
    for why, expected in sorted(told.refused):
        _log.log(logging.INFO if expected else logging.WARNING, "Spark SQL aggregates this batch: %s", why)
    if told.refused:
        return None
    by_topic = {s.source.topic: told.counts(s) for s in streams}
    names = {(p.topic, f"{TABLE}{n}"): a.table for p in passes for n, a in enumerate(p.aggregations)}
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for key, rows in told.rows.items():
        if key in names:
            parts[names[key]] += rows
    state = {s.table: _state(s, found, writers) for s in sinks if (found := parts.pop(s.table, []))}
    return NativeFound(by_topic, state, {table: pa.concat_tables(found) for table, found in parts.items()})


@dataclass
class _Told:
    """What all tasks gave, by topic and what it is, one table for each task."""

    rows: dict[tuple[str, str], list[pa.Table]] = field(default_factory=lambda: defaultdict(list))

    @staticmethod
    def of(given: Given) -> _Told:
        told = _Told()
        for row in given:
            told.rows[row["topic"], row["what"]].append(unpacked(row["body"]))
        return told

    @property
    def refused(self) -> set[tuple[str, bool]]:
        """Why tasks gave up, and whether that may happen."""
        parts = [part for (_, what), parts in self.rows.items() if what == REFUSED for part in parts]
        return {(row["why"], row["expected"]) for part in parts for row in part.to_pylist()}

    def counts(self, stream: Stream) -> Counts:
        """The counts of one input."""
        numbers, blocks, rejected, late = (
            self.rows.get((stream.source.topic, what), []) for what in (COUNTS, BLOCKS, REJECTED, LATE)
        )
        found = {}
        for name in stream.counter.expressions:
            values = [value for part in numbers for value in part[name].to_pylist() if value is not None]
            found[name] = max(values, default=None) if name.startswith(GREATEST) else sum(values)
        bitmaps = [np.frombuffer(part["bitmap"][0].as_py(), np.uint8) for part in blocks]
        stray = reduce(np.bitwise_or, bitmaps).tobytes() if bitmaps else b""
        both = pa.concat_tables([rejected_of({}), *rejected]), pa.concat_tables([late_of({}), *late])
        partly = [row for part in self.rows.get((stream.source.topic, PARTLY), []) for row in part.to_pylist()]
        refusals = refusals_of((row["table"], row["windows"], row["rows"]) for row in partly)
        return replace(stream.counter.counts(found, stray, *both), refusals=refusals)


def _state(sink: WindowedSink, parts: Sequence[pa.Table], writers: RowWriters) -> StagedRows:
    """Rows of state: one for each pane and key; of sessions, one for each stretch that a task found."""
    found = [_with_panes(sink, part) for part in parts]
    if len(found) == 1 or PANE_END in parts[0].column_names:
        return writers.taken(pa.concat_tables(found))
    staged = [writers.in_driver(part) for part in found]
    statement = folded_state(ROWS, sink, writers.fields(staged), sink.pane_columns)
    return writers.merged(statement, staged, at_most=sum(part.count for part in staged))


def _with_panes(sink: WindowedSink, rows: pa.Table) -> pa.Table:
    """The rows with the columns that say where a pane lies."""
    start = rows[PANE].cast(_TIMESTAMP)
    columns = {"pane_day": start.cast(pa.date32()), "pane_start": start}
    if "pane_end" in sink.pane_columns:
        columns["pane_end"] = _ends(sink, rows).cast(_TIMESTAMP)
    rest = [name for name in rows.column_names if name not in {PANE, PANE_END}]
    return pa.table({**{name: columns[name] for name in sink.pane_columns}, **{name: rows[name] for name in rest}})


def _ends(sink: WindowedSink, rows: pa.Table) -> pa.ChunkedArray:
    if PANE_END in rows.column_names:
        return rows[PANE_END]
    starts = pc.unique(rows[PANE])
    ends = pa.array([sink.window.panes.end_of(start) for start in starts.to_pylist()], pa.int64())
    return ends.take(pc.index_in(rows[PANE], starts))
