"""Aggregates a batch with DuckDB: in this process if its records are few, otherwise in one job of Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

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

    @property
    def _is_small(self) -> bool:
        return self.slices.plan.records <= self.most_here

    def held(self, read: Read) -> Read:
        """The same records; those that may be read only once are in memory if this process will read them."""
        once = any(not stream.scan.rereadable for stream in read.streams)
        if not (once and self._is_small and native_passes(read.streams, here=True)):
            return read
        return Read(tuple(stream.over(self.fetched(stream.scan)) for stream in read.streams))

    def over(self, read: Read) -> Aggregated | None:
        """The result of step 3; None if Spark SQL has to do it, then nothing is written."""
        passes = native_passes(read.streams, here=self._is_small)
        found = self._found(read, passes) if passes else None
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

    def _found(self, read: Read, passes: Sequence[NativePass]) -> NativeFound | None:
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        with ExitStack() as inputs:
            for stream in read.streams:
                inputs.enter_context(boundary(f"input:{stream.source.topic}", self.slices.plan.batch_id))
            given = self._given(read, passes)
            return None if given is None else found_natively(given, read.streams, passes, sinks, self.writers)

    def _given(self, read: Read, passes: Sequence[NativePass]) -> Given | None:
        """What the passes give; None if they bring back rows and cannot run here."""
        given = given_here(read.streams, passes, most=self.most_here) if self._is_small else None
        if given is not None:
            return given
        # Spark's heap has a bound for what workers bring back, and they bring back no rows.
        passes = native_passes(read.streams, here=False) if self._is_small else passes
        return given_by_spark(read.streams, passes, self.writers) if passes else None

    def _staged(self, found: NativeFound) -> Mapping[str, StagedRows] | None:
        """What was found for each table; None if Spark has to fold records."""
        staged = dict(found.state)
        for sink in (sink for sink in self.flow.sinks if sink.table in found.rows):
            rows = found.rows[sink.table]
            if not isinstance(sink, FiringSink):
                staged[sink.table] = self.writers.taken(rows)
            elif (folded := self.firings.folded_here(sink, rows)) is not None:
                staged[sink.table] = self.writers.in_driver(folded)
            else:
                return None
        return staged
