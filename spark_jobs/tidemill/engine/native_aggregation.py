"""Aggregates a batch with DuckDB: in this process if its records are few, otherwise in one job of Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.log.scan import Scan
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.native_found import NativeFound, found_natively
from tidemill.engine.aggregate.native_pass import NativePass
from tidemill.engine.aggregate.native_plan import native_passes
from tidemill.engine.aggregate.native_runs import Given, given_by_spark, given_here
from tidemill.engine.aggregating import Aggregating
from tidemill.engine.publish.firings import Firings
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import Aggregated, Read
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows


@dataclass(frozen=True)
class NativeAggregation:
    """The pass over the records of a batch, whose state goes to `slices`; `firings` folds what is ordered.

    A batch of up to `most_here` records is aggregated in this process, without Spark, if it can read them: `fetched`
    may bring those of a scan into memory.
    """

    flow: Flow
    writers: RowWriters
    slices: SliceWriter
    firings: Firings
    most_here: int
    fetched: Callable[[Scan], Scan]

    def over(self, read: Read) -> Aggregated | None:
        """The result of step 3; None if Spark SQL has to do it, then nothing is written."""
        few = self.slices.plan.records <= self.most_here
        passes = native_passes(read.streams, here=few)
        if few and passes:
            read = Read(tuple(stream.over(self.fetched(stream.scan)) for stream in read.streams))
        found = self._found(read, passes, few=few) if passes else None
        staged = None if found is None else self._staged(found)
        if found is None or staged is None:
            return None
        made = Aggregating(self.slices)
        for sink in (sink for sink in self.flow.sinks if sink.table in staged):
            with boundary(f"records:{sink.table}", self.slices.plan.batch_id):
                rows = staged[sink.table]
            made.take(sink, rows)
        nothing = {source.topic: Counts(account=Account()) for source in self.flow.inputs}
        return made.result(read, {**nothing, **found.counts})

    def _found(self, read: Read, passes: Sequence[NativePass], *, few: bool) -> NativeFound | None:
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        with ExitStack() as inputs:
            for stream in read.streams:
                inputs.enter_context(boundary(f"input:{stream.source.topic}", self.slices.plan.batch_id))
            given = self._given(read, passes, few=few)
            return None if given is None else found_natively(given, read.streams, passes, sinks, self.writers)

    def _given(self, read: Read, passes: Sequence[NativePass], *, few: bool) -> Given | None:
        """What the passes give; None if they bring back rows and cannot run here."""
        given = given_here(read.streams, passes, most=self.most_here) if few else None
        if given is not None:
            return given
        of_rows = any(not isinstance(sink, WindowedSink) for sink in self.flow.sinks)
        return None if of_rows else given_by_spark(read.streams, passes, self.writers)

    def _staged(self, found: NativeFound) -> Mapping[str, StagedRows] | None:
        """What was found for each table; None if Spark has to fold records."""
        staged = dict(found.state)
        for sink in (sink for sink in self.flow.sinks if sink.table in found.rows):
            rows: pa.Table | None = found.rows[sink.table]
            if isinstance(sink, FiringSink) and (rows := self.firings.folded_here(sink, rows)) is None:
                return None
            staged[sink.table] = self.writers.taken(rows)
        return staged
