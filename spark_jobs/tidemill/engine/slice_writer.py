"""What an attempt appends to tables of state: always as its slice, which counts once the batch is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.node_sql import of_nodes
from tidemill.engine.aggregate.window_sql import SLICE_COLUMNS
from tidemill.engine.publish.session_results import times_of
from tidemill.engine.publish.table_writer import TableWriter
from tidemill.engine.steps import StateWritten
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import Uris


@dataclass(frozen=True, kw_only=True)
class SliceWriter:
    """Appends rows in the slice of attempt `number`."""

    plan: BatchPlan
    number: int
    uris: Uris
    publisher: TableWriter

    def state(self, sink: WindowedSink, staged: StagedRows, written: StateWritten) -> None:
        """Append partial aggregates of panes, and note them in `written`."""
        staged = written.partials[sink.table] = staged.stamped(self._values)
        if not staged.count:
            return
        written.touched[sink.table] = times_of(sink, staged)
        spec = self.uris.state(sink, staged.writer.fields(staged.rows))
        with boundary(f"state:{sink.table}", self.plan.batch_id):
            handle = self.publisher.append_slice(spec, self.publisher.expected.state(sink), staged)
            written.states[sink.table] = State(spec=spec, handle=handle)

    def nodes(self, sink: WindowedSink, nodes: StagedRows | None, there: State | None) -> None:
        """Append panes merged ahead; `there` is their table, if the batch has already opened it."""
        if nodes is None or not nodes.count:
            return
        names = ("pane_level", "pane_start", *of_nodes(sink), *SLICE_COLUMNS)
        staged = nodes.stamped(self._values).picked({name: name for name in names})
        with boundary(f"merged:{sink.table}", self.plan.batch_id):
            spec = self.uris.merged(sink, staged.writer.fields(staged.rows))
            opened = None if there is None else there.handle
            self.publisher.append_slice(spec, self.publisher.expected.merged(sink), staged, opened)

    def keys(self, sink: FiringSink, staged: StagedRows | None) -> None:
        """Append what keys of ordered windows keep, and aggregates of their pieces."""
        if staged is None or not staged.count:
            return
        staged = staged.stamped(self._values)
        spec = self.uris.state(sink, staged.writer.fields(staged.rows))
        with boundary(f"state:{sink.table}", self.plan.batch_id):
            self.publisher.append_slice(spec, self.publisher.expected.state(sink), staged)

    @property
    def _values(self) -> Mapping[str, pa.Scalar]:
        values = (self.plan.batch_id, self.number)
        return {c: pa.scalar(value, pa.int64()) for c, value in zip(SLICE_COLUMNS, values, strict=True)}
