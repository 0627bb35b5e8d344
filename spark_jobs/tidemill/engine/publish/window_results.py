"""The windows that a batch publishes: which fire, and from which state they are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.contract.schema import Field
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.plan.amendments import Fold
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.open_sessions import OpenSessions
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import SliceSet
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.watermarks import END
from tidemill.engine.aggregate.aggregate_sql import state_columns
from tidemill.engine.aggregate.firing import Firing, Refiring
from tidemill.engine.aggregate.node_sql import merged_nodes, node_columns
from tidemill.engine.aggregate.window_sql import DROPPED, folded_sessions, folded_state, merged_windows
from tidemill.engine.publish.merged_ahead import Ahead, edges_of, rows_for_nodes, tree_of
from tidemill.engine.publish.session_results import SessionFiring
from tidemill.engine.read.fitted import UNFIT, told
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.chains import START
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.spread import LEVEL, TOUCHED
from tidemill.engine.storage.staged_rows import Joined, RowWriters, StagedRows
from tidemill.engine.storage.state_table import LIGHT, Part, State, node_predicates, pane_predicates
from tidemill.engine.storage.table_layout import Uris

AT_ONCE = 100_000
"""The most rows that may be merged into windows that fire together; if there are more, nodes are built first."""


@dataclass(frozen=True, slots=True)
class Fired:
    """The rows of windows that fire, the nodes to write, and published sessions to remove; None when there are none.

    `open_since` is for the table's entry in `Position.open_since`; None where it has no sessions.
    """

    windows: StagedRows | None = None
    nodes: StagedRows | None = None
    gone: StagedRows | None = None
    open_since: OpenSessions | None = None


@dataclass(kw_only=True)
class Windows:
    """Merges the windows of a batch's sinks.

    `states` has the state tables that the batch has already opened, `merged` its tables of merged panes. `unfit`
    collects the values that do not fit the contracts.
    """

    plan: BatchPlan
    uris: Uris
    writers: RowWriters
    expected: ExpectedVersions
    states: dict[str, State] = field(default_factory=dict)
    merged: dict[str, State] = field(default_factory=dict)
    unfit: list[CheckResult] = field(default_factory=list)
    at_once: int = AT_ONCE

    def fire(self, sink: WindowedSink, after: Position, partials: StagedRows | None, touched: Sequence[int]) -> Fired:
        """The windows that fire when the pipeline moves to `after`, and the panes that are then merged ahead.

        `partials` is the state of this batch, which no slice set shows yet; it lies in the panes `touched`.
        """
        if sink.merging:
            return self._fire_sessions(sink, SessionFiring.of(sink, self.plan, after), partials)
        firing = Firing.of(sink, self.plan, after)
        if sink.merges_ahead:
            return self._fire_ahead(Ahead.of(sink, self.plan, firing), partials, touched)
        ranges = [pane_predicates(panes) for panes in firing.pane_ranges(sink, touched)]
        state = [part.stamped({"_touched": pa.scalar(False)}) for part in self._panes(sink, ranges)]
        if sink.start is None and partials:
            # Nothing closes, so only keys of this batch fire: what follows costs as much as they do.
            state = [self.writers.of_keys(part, partials, sink.keys) for part in state]
        if partials and ranges:
            state.append(partials.stamped({"_touched": pa.scalar(True)}))
        bounds, most = _scalars(firing.bounds), firing.most_windows(sink.window.panes)
        return self._merged(sink, [part.stamped(bounds) for part in state], each=most)

    def _fire_sessions(self, sink: WindowedSink, firing: SessionFiring, partials: StagedRows | None) -> Fired:
        own = [partials.stamped({"_touched": pa.scalar(True)})] if partials and partials.count else []
        joined = self._joined(sink, firing, own)
        if joined is None:
            return Fired(open_since=firing.open_since(sink, None))
        open_since = firing.open_since(sink, joined.open_since)
        if not joined.fires.count and not joined.gone.count:
            return Fired(open_since=open_since)
        fired = self._merged_sessions(sink, joined.fires)
        gone = [joined.gone.picked({START: sink.bounds[0], **{k: k for k in sink.keys}}), fired.gone]
        return replace(fired, gone=self._gone(gone), open_since=open_since)

    def _joined(
        self, sink: WindowedSink, firing: SessionFiring, own: Sequence[StagedRows], slices: SliceSet | None = None
    ) -> Joined | None:
        """Rows of state, joined into sessions; None when there are none."""
        where = [] if firing.since == END else [pane_predicates((firing.since, firing.until))]
        parts = self._panes(sink, where, slices)
        state = [*own, *(part.stamped({"_touched": pa.scalar(False)}) for part in parts if part.count)]
        return self.writers.chained(state, firing.chain) if state else None

    def _sessions_again(self, sink: WindowedSink, slices: SliceSet) -> StagedRows | None:
        joined = self._joined(sink, SessionFiring.again(sink, self.plan), [], slices)
        return self._merged_sessions(sink, joined.fires).windows if joined and joined.fires.count else None

    def _merged_sessions(self, sink: WindowedSink, state: StagedRows) -> Fired:
        """Sessions merged from rows of state that have the bounds of their session."""
        return self._finished(sink, [state], at_most=state.count)

    def _gone(self, parts: Sequence[StagedRows | None]) -> StagedRows | None:
        """Rows to remove, in one part; None when there are none."""
        full = [part for part in parts if part is not None and part.count]
        return self.writers.together(full) if full else None

    def _fire_ahead(self, ahead: Ahead, partials: StagedRows | None, touched: Sequence[int]) -> Fired:
        sink = ahead.sink
        panes, nodes = ahead.reads(touched)
        with ThreadPoolExecutor(1) as beside:
            if nodes:
                beside.submit(self._opened_nodes, sink)
            old = [rows_for_nodes(sink, part, touched=False) for part in self._panes(sink, panes)]
        old += [rows_for_nodes(sink, part, touched=False, level=None) for part in self._nodes(sink, nodes)]
        own = [partials] if partials and partials.count and ahead.wants(touched) else []
        if ahead.closes_many(sum(part.count for part in (*own, *old)), self.at_once):
            return self._nodes_first(ahead, own, old)
        # Do not build nodes that no later batch will use.
        ahead = replace(ahead, until=ahead.tree.built) if ahead.ends else ahead
        alone = [rows_for_nodes(sink, part, touched=True, alone=True) for part in own]
        return self._merged_ahead(ahead, ahead.bounds, alone, old)

    def _nodes_first(self, ahead: Ahead, own: Sequence[StagedRows], old: Sequence[StagedRows]) -> Fired:
        """Build nodes first, then merge windows from them: merging many closing panes into all windows is slow."""
        alone = [rows_for_nodes(ahead.sink, part, touched=True, alone=True) for part in own]
        nodes = self._merged_ahead(ahead, ahead.first_nodes, alone, old).nodes
        own = [rows_for_nodes(ahead.sink, part, touched=True) for part in own]
        new = [nodes.stamped({"_alone": pa.scalar(False)})] if nodes is not None else []
        windows = self._merged_ahead(ahead, ahead.from_nodes, own, [*old, *new]).windows
        return Fired(windows, None if ahead.ends else nodes)

    def _merged_ahead(
        self, ahead: Ahead, bounds: Mapping[str, pa.Scalar], own: Sequence[StagedRows], old: Sequence[StagedRows]
    ) -> Fired:
        brought, rows = (sum(part.count for part in parts) for parts in (own, [*own, *old]))
        if not rows:
            return Fired()
        spread = self.writers.spread([*own, *old], ahead.spread(bounds), at_most=ahead.most(rows, brought))
        if not any(part.count for part in spread):
            return Fired()
        types = self.writers.fields([*own, *old])
        statement, names = merged_nodes(ROWS, ahead.sink, types), node_columns(ahead.sink)
        computed = [*(f.name for f in ahead.sink.computed), UNFIT]
        windows, nodes = self.writers.merged_apart(statement, spread, LEVEL, zero=computed, more=[*names, TOUCHED])
        renamed = nodes.picked({**names, TOUCHED: TOUCHED}) if nodes.count else None
        return Fired(self._told(ahead.sink, windows), renamed)

    def fire_again(self, sink: WindowedSink, job: Backfill, slices: SliceSet) -> StagedRows | None:
        """The rows of every window that holds panes of a job, once `slices` are visible; None when there are none."""
        # This batch appended its slice after it had opened the state.
        self.states.pop(sink.table, None)
        if sink.merging:
            return self._sessions_again(sink, slices)
        refiring = Refiring.of(sink, job, self.plan.position)
        parts = []
        for panes in refiring.ranges:
            bounds = _scalars(refiring.bounds(sink, panes)) | {"_touched": pa.scalar(True)}
            parts += [part.stamped(bounds) for part in self._panes(sink, [pane_predicates(panes)], slices)]
        return self._merged(sink, parts, each=sink.window.panes.overlap).windows

    def folded(self, sink: WindowedSink, fold: Fold) -> StagedRows | None:
        """The state of the folded batches as one slice; None when they left no state."""
        span = fold.panes.get(sink.table)
        state = State.of(self.uris, sink, self.expected.state(sink))
        if span is None or state is None:
            return None
        self.states[sink.table] = state
        part = pane_predicates((span.first, span.last + 1))
        slices = self.plan.position.slices.only(fold.batches)
        if sink.merging:
            firing = replace(SessionFiring.everything(sink), since=span.first, until=span.last + 1)
            joined = self._joined(sink, firing, [], slices)
            return None if joined is None else self._folded_sessions(sink, joined.fires, state.spec.fields)
        parts = self._panes(sink, [part], slices)
        return self._as_one(sink, parts, state.spec.fields, by=sink.pane_columns)

    def _folded_sessions(self, sink: WindowedSink, state: StagedRows, types: Sequence[Field]) -> StagedRows:
        return self.writers.merged(folded_sessions(ROWS, sink, types), [state], at_most=state.count)

    def folded_nodes(self, sink: WindowedSink, fold: Fold) -> StagedRows | None:
        """The nodes of the folded batches as one slice, without nodes that are no longer used; None without nodes."""
        state = self._opened_nodes(sink) if sink.merges_ahead else None
        if state is None:
            return None
        tree = tree_of(sink, self.plan)
        spans = [(level, edges_of((tree.since, tree.built))) for level in range(1, tree.levels + 1)]
        parts = [node_predicates(level, edges) for level, edges in spans if edges is not None]
        staged = self._nodes(sink, parts, self.plan.position.slices.only(fold.batches))
        return self._as_one(sink, staged, state.spec.fields, by=("pane_level", "pane_start"))

    def _as_one(
        self, sink: WindowedSink, parts: Sequence[StagedRows], types: Sequence[Field], by: Sequence[str]
    ) -> StagedRows | None:
        return self._folded(sink, parts, types, by) if any(part.count for part in parts) else None

    def _folded(
        self, sink: WindowedSink, parts: Sequence[StagedRows], types: Sequence[Field], by: Sequence[str]
    ) -> StagedRows:
        statement, there = folded_state(ROWS, sink, types, by), [part for part in parts if part.count]
        return self.writers.merged(statement, there, at_most=sum(part.count for part in there))

    def _merged(self, sink: WindowedSink, state: Sequence[StagedRows], *, each: int) -> Fired:
        """Windows merged from rows of state; each row belongs to at most `each` windows."""
        # Panes of closing windows may hold many more rows than this batch brought.
        bound = sum(part.count for part in state)
        there = [part for part in state if part.count]
        return self._finished(sink, there, at_most=bound * max(each, 1)) if bound else Fired()

    def _finished(self, sink: WindowedSink, state: Sequence[StagedRows], *, at_most: int) -> Fired:
        """The rows to publish, and those that do not meet the filters of the sink, which may be published already."""
        statement = merged_windows(ROWS, sink)
        if not sink.chooses:
            return Fired(self._told(sink, self.writers.merged(statement, state, at_most=at_most)))
        computed, key = [*(f.name for f in sink.computed), UNFIT], sink.row_key or (sink.computed[0].name,)
        rows, dropped = self.writers.merged_apart(statement, state, DROPPED, zero=computed, more=key)
        return Fired(self._told(sink, rows), gone=dropped if dropped.count else None)

    def _told(self, sink: WindowedSink, windows: StagedRows) -> StagedRows:
        staged, unfit = told(windows, sink.table, sink.contract)
        self.unfit += unfit
        return staged

    def _panes(self, sink: WindowedSink, parts: Sequence[Part], slices: SliceSet | None = None) -> list[StagedRows]:
        if not parts:
            return []
        with boundary(f"panes:{sink.table}", self.plan.batch_id):
            state = self.states.get(sink.table) or State.of(self.uris, sink, self.expected.state(sink))
            return self._rows(sink, state, parts, slices)

    def _nodes(self, sink: WindowedSink, parts: Sequence[Part], slices: SliceSet | None = None) -> list[StagedRows]:
        return self._rows(sink, self._opened_nodes(sink), parts, slices) if parts else []

    def _opened_nodes(self, sink: WindowedSink) -> State | None:
        state = self.merged.get(sink.table) or State.merged(self.uris, sink, self.expected.merged(sink))
        if state is not None:
            self.merged[sink.table] = state
        return state

    def _rows(
        self, sink: WindowedSink, state: State | None, parts: Sequence[Part], slices: SliceSet | None
    ) -> list[StagedRows]:
        if state is None:
            return []
        files = state.files(parts)
        light = files.bytes <= LIGHT
        if not (count := state.at_most(parts, files, most=self.writers.most(light=light))):
            return []
        writer = self.writers.of_state(count, light=light)
        rows = state.read(writer, parts, slices or self.plan.position.slices)
        # Older state may lack columns of aggregates that were added later.
        there = {f.name for f in state.spec.fields}
        missing = {c: pa.scalar(None, pa.int64()) for c in state_columns(sink) if c not in there}
        return [StagedRows(writer, rows, writer.at_most(rows, count)).stamped(missing)]


def _scalars(bounds: Mapping[str, int]) -> dict[str, pa.Scalar]:
    return {name: pa.scalar(value, pa.int64()) for name, value in bounds.items()}
