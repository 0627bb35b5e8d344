"""The windows that a batch publishes: which fire, what state they are merged from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tidemill.core.amendments import Fold
from tidemill.core.failpoints import boundary
from tidemill.core.flow import WindowedSink
from tidemill.core.plan import BatchPlan
from tidemill.core.position import Backfill
from tidemill.core.schema import Field
from tidemill.core.slices import SliceSet
from tidemill.engine.firing import Firing, Refiring
from tidemill.engine.holding import Held, Lanes
from tidemill.engine.marks import Marks
from tidemill.engine.places import Uris
from tidemill.engine.query import ROWS, query
from tidemill.engine.state import PaneRange, State
from tidemill.engine.windowing import folded_state, merged_windows


@dataclass(kw_only=True)
class Windows:
    """Merges windows of a batch's sinks. `states` has the state that the batch has opened already, by table."""

    session: SparkSession
    plan: BatchPlan
    uris: Uris
    lanes: Lanes
    marks: Marks
    states: dict[str, State] = field(default_factory=dict)

    def fire(self, sink: WindowedSink, watermark: int, partials: Held | None, touched: Sequence[int]) -> Held | None:
        """The rows of the windows that fire when the watermark moves to `watermark`; None when none does.

        `partials` is the state of this batch, which no slice set shows yet, in the panes `touched`.
        """
        firing = Firing.of(sink, self.plan, watermark)
        ranges = firing.pane_ranges(sink, touched)
        state = [part.stamped({"_touched": pa.scalar(False)}) for part in self._panes(sink, ranges)]
        if partials and ranges:
            state.append(partials.stamped({"_touched": pa.scalar(True)}))
        return self._merged(sink, [part.stamped(_scalars(firing.bounds)) for part in state])

    def fire_again(self, sink: WindowedSink, job: Backfill, slices: SliceSet, watermark: int) -> Held | None:
        """The rows of every window over the panes of a job, once `slices` count; None when there are none."""
        refiring = Refiring.of(sink, job.panes.get(sink.table, ()), watermark)
        # Slices of this very batch were appended after its state was opened.
        self.states.pop(sink.table, None)
        parts = []
        for panes in refiring.ranges:
            bounds = _scalars(refiring.bounds(sink, panes)) | {"_touched": pa.scalar(True)}
            parts += [part.stamped(bounds) for part in self._panes(sink, [panes], slices)]
        return self._merged(sink, parts)

    def folded(self, sink: WindowedSink, fold: Fold) -> Held | None:
        """The state of some batches as that of one; None when they left none."""
        span = fold.panes.get(sink.table)
        state = State.of(self.uris, sink, self.marks.state(sink))
        if span is None or state is None:
            return None
        self.states[sink.table] = state
        parts = self._panes(sink, [(span.first, span.last + 1)], self.plan.position.slices.only(fold.batches))
        bound = sum(part.count for part in parts)
        return self._folded(sink, parts, state.spec.fields) if bound else None

    def _folded(self, sink: WindowedSink, parts: Sequence[Held], types: Sequence[Field]) -> Held:
        rows = query(self.session, folded_state(ROWS, sink, types), self.lanes.frame(parts))
        return self.lanes.hold(rows, at_most=sum(part.count for part in parts))

    def _merged(self, sink: WindowedSink, state: Sequence[Held]) -> Held | None:
        # Panes of windows that close may hold many more rows than this batch brought.
        bound = sum(part.count for part in state)
        if not bound:
            return None
        whole = self.lanes.frame([part for part in state if part.count])
        windows = query(self.session, merged_windows(ROWS, sink), whole)
        return self.lanes.hold(windows, at_most=bound * sink.window.panes.overlap)

    def _panes(self, sink: WindowedSink, ranges: Sequence[PaneRange], slices: SliceSet | None = None) -> list[Held]:
        if not ranges:
            return []
        with boundary(f"panes:{sink.table}", self.plan.batch_id):
            state = self.states.get(sink.table) or State.of(self.uris, sink, self.marks.state(sink))
            count = state.at_most(ranges) if state else 0
            if state is None or not count:
                return []
            lane, visible = self.lanes.of(count), slices or self.plan.position.slices
            return [Held(lane, rows, count) for rows in state.read(lane, ranges, visible)]


def _scalars(bounds: Mapping[str, int]) -> dict[str, pa.Scalar]:
    return {name: pa.scalar(value, pa.int64()) for name, value in bounds.items()}
