"""Aggregates a batch with DuckDB: in this process if its records are few, otherwise in one job of Spark's workers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.native_found import found_natively
from tidemill.engine.aggregate.native_pass import NativePass
from tidemill.engine.aggregate.native_plan import native_passes
from tidemill.engine.aggregate.native_runs import Given, given_by_spark, given_here
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import Aggregated, Read, StateWritten
from tidemill.engine.storage.staged_rows import RowWriters


@dataclass(frozen=True)
class NativeAggregation:
    """The pass over the records of a batch, whose state goes to `slices`.

    A batch of up to `most_here` records is aggregated in this process, without Spark, if it can read them.
    """

    flow: Flow
    writers: RowWriters
    slices: SliceWriter
    most_here: int

    def over(self, read: Read) -> Aggregated | None:
        """The result of step 3; None if Spark SQL has to do it, then nothing is written."""
        passes, batch = native_passes(read.streams), self.slices.plan.batch_id
        if not passes:
            return None
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        with ExitStack() as inputs:
            for stream in read.streams:
                inputs.enter_context(boundary(f"input:{stream.source.topic}", batch))
            found = found_natively(self._given(read, passes), read.streams, passes, sinks, self.writers)
        if found is None:
            return None
        state = StateWritten()
        for sink in (sink for sink in sinks if sink.table in found.state):
            with boundary(f"records:{sink.table}", batch):
                staged = found.state[sink.table]
            self.slices.state(sink, staged, state)
        nothing = {source.topic: Counts(account=Account()) for source in self.flow.inputs}
        return Aggregated(read=read, counts={**nothing, **found.counts}, **vars(state))

    def _given(self, read: Read, passes: Sequence[NativePass]) -> Given:
        if self.slices.plan.records <= self.most_here:
            given = given_here(read.streams, passes, most=self.most_here)
            if given is not None:
                return given
        return given_by_spark(read.streams, passes, self.writers)
