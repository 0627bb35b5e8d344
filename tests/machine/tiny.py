"""An engine of a few lines of Python in the place of Spark, for pipelines of JSON events: all else is the product.

There may be several topics and several tables. Tables have windows, a filter that leaves out one user, `user` as the
key or none, and count and sum amounts.

It decodes, filters, aggregates and merges one row after the other. Plans, ledger, slices, state, fences, publication,
quarantine and the late table are the product's own, so that a batch takes milliseconds and protocol and storage are
what is tested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from machine.tiny_pieces import pieces
from machine.tiny_rows import (
    TIMESTAMP,
    Row,
    decoded,
    key_of,
    node_schema,
    partial_columns,
    partials,
    place,
    place_of,
    row_schema,
    state_schema,
)
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Input
from tidemill.core.bind.sinks import WindowedSink, named_windows
from tidemill.core.contract.schema import Field
from tidemill.core.declare.aggregates import Count
from tidemill.core.declare.operators import Filter
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.ordered.event_windows import EventWindows
from tidemill.core.plan.amendments import Repair
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.pane_tree import Node
from tidemill.core.time.panes import OnePane
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END, Furthest
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.attempt import Attempt
from tidemill.engine.publish.merged_ahead import Ahead
from tidemill.engine.publish.side_tables import SideOutputs
from tidemill.engine.publish.window_results import Fired, Windows
from tidemill.engine.steps import Aggregated, Read
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.log.reading import read_records


class TinyWriters(RowWriters):
    """Rows are Arrow tables, and there is no job."""

    def stage(self, frame: Any, *, at_most: int) -> StagedRows:
        return StagedRows(self.driver, frame, frame.num_rows)

    def together(self, parts: Sequence[StagedRows]) -> StagedRows:
        names = parts[0].rows.column_names
        rows = pa.concat_tables([p.rows.select(names) for p in parts], promote_options="permissive")
        return StagedRows(self.driver, rows, rows.num_rows)


class TinyWindows(Windows):
    """Merges state in a dictionary."""

    def _folded(
        self, sink: WindowedSink, parts: Sequence[StagedRows], types: Sequence[Field], by: Sequence[str]
    ) -> StagedRows:
        found = _Sums(sink)
        for row in (row for part in parts for row in part.rows.to_pylist()):
            found.add((*(row[c] for c in by), *(row[k] for k in sink.keys)), row, fires=True)
        schema = node_schema(sink) if "pane_level" in by else state_schema(sink)
        rows = [(*key, *partials(sink, values)) for key, values in sorted(found.sums.items())]
        return self._staged(rows, pa.schema([f for f in schema if f.name != "_touched"]))

    def _merged_ahead(
        self, ahead: Ahead, bounds: Mapping[str, pa.Scalar], own: Sequence[StagedRows], old: Sequence[StagedRows]
    ) -> Fired:
        bound, sink = {name: value.as_py() for name, value in bounds.items()}, ahead.sink
        tree = replace(ahead.tree, since=bound["_since"], built=bound["_built"])
        windows, nodes = _Sums(sink), _Sums(sink)
        for row in (row for part in (*own, *old) for row in part.rows.to_pylist()):
            node, key = Node(row["pane_level"], micros(row["pane_start"])), tuple(row[k] for k in sink.keys)
            for start in tree.window_starts(node, alone=row["_alone"]):
                if bound["_first"] <= start <= bound["_last"]:
                    end = sink.window.panes.end_of(start)
                    on_time = bound["_before"] < end <= bound["_after"]
                    again = bound["_refused_until"] < end <= bound["_again_until"]
                    if on_time or again:
                        windows.add((start, *key), row, fires=on_time or row["_touched"])
            for above in tree.grown(node, bound["_until"], alone=row["_alone"]):
                nodes.add((above.level, above.start, *key), row, fires=row["_touched"])
        rows = self._published(sink, {key: windows.sums[key] for key in windows.fires})
        found = [
            (level, moment(start), *key, *partials(sink, values), (level, start, *key) in nodes.fires)
            for (level, start, *key), values in sorted(nodes.sums.items())
        ]
        return Fired(rows, self._staged(found, node_schema(sink)) if found else None)

    def _merged(self, sink: WindowedSink, state: Sequence[StagedRows], *, each: int) -> Fired:
        found = _Sums(sink)
        for row in (row for part in state for row in part.rows.to_pylist()):
            for window in sink.window.panes.windows_of(micros(row["pane_start"])):
                on_time = row["_before"] < window.end <= row["_after"]
                if on_time or row["_refused_until"] < window.end <= row["_again_until"]:
                    key = (window.start, *(row[k] for k in sink.keys))
                    found.add(key, row, fires=on_time or row["_touched"])
        return Fired(self._published(sink, {key: found.sums[key] for key in found.fires})) if state else Fired()

    def _published(self, sink: WindowedSink, sums: Mapping[tuple[Any, ...], Sequence[int]]) -> StagedRows:
        ends = sink.window.panes.end_of
        found = sorted(sums.items())
        rows = [((moment(s), moment(ends(s))) if sink.bounds else ()) + (*key, *values) for (s, *key), values in found]
        return self._staged(rows, row_schema(sink))

    def _merged_sessions(self, sink: WindowedSink, state: StagedRows) -> Fired:
        rows = [(moment(s), moment(e), *key, *values) for (s, e, *key), values in self._by_session(sink, state)]
        return Fired(self._staged(rows, row_schema(sink)))

    def _folded_sessions(self, sink: WindowedSink, state: StagedRows, types: Sequence[Field]) -> StagedRows:
        rows = [
            (moment(s).date(), moment(s), moment(e), *key, *partials(sink, values))
            for (s, e, *key), values in self._by_session(sink, state)
        ]
        return self._staged(rows, state_schema(sink))

    def _by_session(self, sink: WindowedSink, state: StagedRows) -> list[tuple[Any, list[int]]]:
        found = _Sums(sink)
        for row in state.rows.to_pylist():
            found.add((row["_start"], row["_end"], *(row[k] for k in sink.keys)), row, fires=True)
        return sorted(found.sums.items())

    def _staged(self, rows: Sequence[Sequence[Any]], schema: pa.Schema) -> StagedRows:
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
        return self.writers.stage(table, at_most=table.num_rows)


class _Sums:
    """Counts and sums by key, and which of them are published."""

    def __init__(self, sink: WindowedSink) -> None:
        self._names = [f"{name}__value" for name in sink.aggregates]
        self.sums: dict[Any, list[int]] = defaultdict(lambda: [0] * len(self._names))
        self.fires: set[Any] = set()

    def add(self, key: Any, row: Mapping[str, Any], *, fires: bool) -> None:
        """One more row of state."""
        found = self.sums[key]
        for index, name in enumerate(self._names):
            found[index] += row[name]
        if fires:
            self.fires.add(key)


class TinySideOutputs(SideOutputs):
    """Rejected and late rows, given as they are."""

    def __init__(self, attempt: TinyAttempt, found: Aggregated) -> None:
        super().__init__((), found.counts, attempt.plan, attempt.writers, attempt.publisher.superseded_aside)
        object.__setattr__(self, "attempt", attempt)

    def rejected(self, spec: Any) -> StagedRows | None:
        rows = [place(r) | {"reasons": [r.error], "value": r.record.value} for r in self.attempt.bad]
        return self._rows(rows)

    def late(self, spec: Any) -> StagedRows | None:
        rows = []
        for sink, row in self._kept():
            window = named_windows(sink).last_window_of(row.time)
            ordered = isinstance(sink, FiringSink)
            rows.append(
                place(row)
                | {
                    "event_time": moment(row.time),
                    "table_name": sink.table,
                    "window_start": _known(window.start),
                    "window_end": _known(window.end),
                    "watermark": _known(self.plan.position.watermark if ordered else self.plan.lateness_watermark),
                    "row": "{}",
                    "value": row.record.value,
                }
            )
        return self._rows(rows)

    def _kept(self) -> list[tuple[WindowedSink, Row]]:
        if self.plan.job is None:
            return self.attempt.refused
        before = {(r["table_name"], r["topic"], r["partition"], r["offset"]) for r in self.superseded().to_pylist()}
        folded = self.attempt.histories
        return [(s, r) for s, r in self.attempt.refused if s.table in folded or (s.table, *place_of(r)) in before]

    def _rows(self, rows: list[dict[str, Any]]) -> StagedRows | None:
        if not rows:
            return None
        for row in rows:
            row |= {"batch_id": self.plan.batch_id, "recorded_at": self.plan.clock}
        types = {
            "partition": pa.int32(),
            "timestamp": TIMESTAMP,
            "recorded_at": TIMESTAMP,
            "event_time": TIMESTAMP,
            "window_start": TIMESTAMP,
            "window_end": TIMESTAMP,
            "watermark": TIMESTAMP,
            "value": pa.binary(),
        }
        columns = {name: pa.array([r[name] for r in rows], types.get(name)) for name in rows[0]}
        with boundary("side_outputs", self.plan.batch_id):
            return self.writers.stage(pa.table(columns), at_most=len(rows))


def _known(time: int) -> datetime | None:
    return None if time in (BEGINNING, END) else moment(time)


def left_out(sink: Any, source: str) -> str:
    """The user that the filter of a table leaves out."""
    [path] = sink.paths[source]
    [filtering] = [step.operator for step in path if isinstance(step.operator, Filter)]
    return re.findall(r"'(\w+)'", filtering.predicate)[-1]


class TinyAttempt(Attempt):
    """`Attempt` without Spark."""

    merging = TinyWindows

    def open_writers(self) -> RowWriters:
        """Arrow tables, and no job."""
        return TinyWriters(self.spark, driver_rows=self.driver_rows, writer="delta-rs")

    @staticmethod
    def check_types(spark: Any, flow: Any, uris: Any, *, natively: bool) -> None:
        """Nothing is computed by expressions."""

    def read(self) -> Read:
        """Every record, and what becomes of it."""
        self.bad, self.good, self.refused = list[Row](), list[Row](), list[tuple[Any, Row]]()
        self.taken, self.times = defaultdict[str, list[Row]](list), dict[TopicPartition, int]()
        if not self.given_up:
            for source in self.flow.inputs:
                self._read(source)
        return Read()

    def _read(self, source: Input) -> None:
        [rule] = source.contract.row_rules
        maximum, scan = int(re.findall(r"\d+", rule.predicate)[-1]), self.scans.get(source.topic)
        rows = [decoded(r, maximum) for r in read_records(scan)] if scan else []
        good = [r for r in rows if not r.error]
        self.bad += [r for r in rows if r.error]
        self.good += good
        only = self.plan.work.only if isinstance(self.plan.work, Repair) else None
        for sink in (sink for sink in self.flow.sinks if only in (None, sink.table)):
            for row in (r for r in good if r.user != left_out(sink, source.name)):
                if self._is_late(sink, row):
                    self.refused.append((sink, row))
                else:
                    self.taken[sink.table].append(row)
        for row in good:
            tp = TopicPartition(source.topic, row.record.partition)
            self.times[tp] = max(self.times.get(tp, row.time), row.time)

    def _is_late(self, sink: Any, row: Row) -> bool:
        if isinstance(sink, FiringSink):
            return self._is_late_for_firings(sink, row)
        lateness = micros(sink.allowed_lateness) if self.plan.live else 0
        watermark, job = self.plan.lateness_watermark, self.plan.job
        spared = (job.whole or {}).get(sink.table, ()) if job is not None else ()
        if any(span.first <= row.time < sink.panes.end_of(span.last) for span in spared):
            return False
        return sink.panes.is_late(row.time, watermark=watermark, allowed_lateness=lateness)

    def _is_late_for_firings(self, sink: FiringSink, row: Row) -> bool:
        """Whether its windows are closed for the batch that takes it; buffers without an end take all records."""
        watermark = self.plan.position.watermark
        if (history := self.histories.get(sink.table)) is not None:
            place = (np.array([row.record.partition]), np.array([row.record.offset]))
            [watermark] = history.watermarks_of(row.record.topic, *place).tolist()
        if isinstance(sink.panes, OnePane):
            return watermark >= END and isinstance(sink.window, EventWindows)
        return sink.panes.is_late(row.time, watermark=watermark, allowed_lateness=micros(sink.allowed_lateness))

    def aggregate(self, read: Read) -> Aggregated:
        """As in the product; it comes to the boundaries of inputs, too."""
        for source in (i for i in self.flow.inputs if i.topic in self.scans and not self.given_up):
            with boundary(f"input:{source.topic}", self.plan.batch_id):
                pass
        return super().aggregate(read)

    def _of_same_keys(self, sink: FiringSink, taken: list[Row]) -> list[Row]:
        """All records of the keys of these, which a repair folds again."""
        assert self.again is not None
        keys = {key_of(sink, row.user) for row in taken}
        self.firings.touch(sink, pa.table({"user": [row.user for row in taken]}))
        aside = {tuple(row.values()) for row in self.again.aside[sink.table].to_pylist()}
        found = []
        for source in self.flow.inputs:
            [rule] = source.contract.row_rules
            maximum, scan = int(re.findall(r"\d+", rule.predicate)[-1]), self.again.scans.get(source.topic)
            rows = [decoded(r, maximum) for r in read_records(scan)] if scan else []
            good = [r for r in rows if not r.error and r.user != left_out(sink, source.name)]
            found += [r for r in good if key_of(sink, r.user) in keys and place_of(r) not in aside]
        return [row for row in found if not self._is_late_for_firings(sink, row)]

    def count(self, read: Read) -> dict[str, Counts]:
        """What became of the records."""
        return {source.topic: self._counts(source.topic) for source in self.flow.inputs}

    def _counts(self, topic: str) -> Counts:
        bad, good = ([r for r in rows if r.record.topic == topic] for rows in (self.bad, self.good))
        taken = {place_of(r) for rows in self.taken.values() for r in rows if r.record.topic == topic}
        refused = [r for _, r in self.refused if r.record.topic == topic]
        late = {place_of(r) for r in refused} - taken
        account = Account(
            read=len(good) + len(bad),
            aggregated=len(taken),
            filtered=len(good) - len(taken) - len(late),
            rejected=len(bad),
            late=len(late),
        )
        times = {tp: Furthest(time) for tp, time in self.times.items() if tp.topic == topic}
        return Counts(account=account, reached=times, late_rows=len(refused))

    def job(self, read: Read, sink: Any, without: Any = None) -> Any:
        """Rows of state."""
        if isinstance(sink, FiringSink):
            taken = self.taken[sink.table]
            return pieces(sink, self._of_same_keys(sink, taken) if self.again and taken else taken, self.firings)
        sums: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * len(sink.aggregates))
        for row in self.taken[sink.table]:
            found = sums[(sink.window.panes.pane_of(row.time), *key_of(sink, row.user))]
            for index, aggregate in enumerate(sink.aggregates.values()):
                found[index] += 1 if isinstance(aggregate, Count) else row.amount
        schema = state_schema(sink)
        ends, has_end = sink.window.panes.end_of, "pane_end" in sink.pane_columns
        rows = [
            (moment(p).date(), moment(p), *([moment(ends(p))] if has_end else ()), *key, *partials(sink, values))
            for (p, *key), values in sorted(sums.items())
        ]
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)

    def of_nothing(self, sink: FiringSink) -> pa.Table:
        """No count, and no sum."""
        schema = pa.schema(partial_columns(sink))
        values = [0 if part in ("n__value", "amount__n") else None for part in schema.names]
        return pa.Table.from_pylist([dict(zip(schema.names, values, strict=True))], schema=schema)

    def side_outputs(self, found: Aggregated) -> SideOutputs:
        """What goes aside."""
        return TinySideOutputs(self, found)
