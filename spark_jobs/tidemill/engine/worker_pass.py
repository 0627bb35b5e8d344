"""Aggregates a batch inside Spark's Python workers: one job, whatever the number of inputs and tables."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.native_found import found_natively
from tidemill.engine.aggregate.native_plan import native_passes
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import Aggregated, Read, StateWritten
from tidemill.engine.storage.staged_rows import RowWriters


@dataclass(frozen=True, kw_only=True)
class WorkerPass:
    """The pass over the records of a batch, whose state goes to `slices`."""

    flow: Flow
    writers: RowWriters
    slices: SliceWriter

    def over(self, read: Read) -> Aggregated | None:
        """The result of step 3; None if Spark SQL has to do it, then nothing is written."""
        passes, batch = native_passes(read.streams), self.slices.plan.batch_id
        if not passes:
            return None
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        with ExitStack() as inputs:
            for stream in read.streams:
                inputs.enter_context(boundary(f"input:{stream.source.topic}", batch))
            found = found_natively(read.streams, passes, sinks, self.writers)
        if found is None:
            return None
        state = StateWritten()
        for sink in (sink for sink in sinks if sink.table in found.state):
            with boundary(f"records:{sink.table}", batch):
                staged = found.state[sink.table]
            self.slices.state(sink, staged, state)
        nothing = {source.topic: Counts(account=Account()) for source in self.flow.inputs}
        return Aggregated(read=read, counts={**nothing, **found.counts}, **vars(state))
