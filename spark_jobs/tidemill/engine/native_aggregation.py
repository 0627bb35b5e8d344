"""Aggregates a batch with DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.native_found import NativeFound
from tidemill.engine.aggregate.native_reading import NativeReading
from tidemill.engine.aggregating import Aggregating
from tidemill.engine.key_replay import KeyReplay
from tidemill.engine.publish.firings import Firings
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.steps import Aggregated, Read
from tidemill.engine.storage.staged_rows import StagedRows


@dataclass(frozen=True)
class NativeAggregation:
    """The pass over the records of a batch, whose state goes to `slices`; `firings` folds what is ordered.

    `reading` says where; `key_replay` finds what a repair folds again.
    """

    flow: Flow
    reading: NativeReading
    slices: SliceWriter
    firings: Firings
    key_replay: KeyReplay | None = None

    def held(self, read: Read) -> Read:
        """The same records; those that may be read only once are in memory if this process will read them."""
        return Read(tuple(self.reading.held(read.streams, records=self.slices.plan.records)))

    def over(self, read: Read) -> Aggregated | None:
        """The result of step 3; None if Spark SQL has to do it, then nothing is written."""
        found = self._found(read)
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

    def _found(self, read: Read) -> NativeFound | None:
        sinks = [sink for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        with ExitStack() as inputs:
            for stream in read.streams:
                inputs.enter_context(boundary(f"input:{stream.source.topic}", self.slices.plan.batch_id))
            return self.reading.found(read.streams, sinks, records=self.slices.plan.records)

    def _staged(self, found: NativeFound) -> Mapping[str, StagedRows] | None:
        """What was found for each table; None if Spark has to fold records."""
        staged = dict(found.state)
        for sink in (sink for sink in self.flow.sinks if sink.table in found.rows):
            rows = found.rows[sink.table]
            if not isinstance(sink, FiringSink):
                staged[sink.table] = self.reading.writers.taken(rows)
            elif (folded := self._folded(sink, rows)) is not None:
                staged[sink.table] = self.reading.writers.in_driver(folded)
            else:
                return None
        return staged

    def _folded(self, sink: FiringSink, rows: pa.Table) -> pa.Table | None:
        """These rows, folded; in a repair that replays, all rows of their keys. None if Spark has to do it."""
        again = rows if self.key_replay is None else self.key_replay.here(sink, rows)
        return None if again is None else self.firings.folded_here(sink, again)
