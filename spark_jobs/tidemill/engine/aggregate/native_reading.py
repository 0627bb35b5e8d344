"""Reads the records of a batch with DuckDB: in this process if they are few, otherwise in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.log.scan import Scan
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.native_found import NativeFound, found_natively
from tidemill.engine.aggregate.native_pass import NativePass
from tidemill.engine.aggregate.native_plan import native_passes
from tidemill.engine.aggregate.native_runs import Given, given_by_spark, given_here
from tidemill.engine.storage.staged_rows import RowWriters


@dataclass(frozen=True)
class NativeReading:
    """How records are read natively.

    Batches of up to `most_here` records are read in this process, without Spark, if it can read them: `fetched` may
    bring those of a scan into memory.
    """

    writers: RowWriters
    most_here: int
    fetched: Callable[[Scan], Scan]

    def held(self, streams: Sequence[Stream], *, records: int) -> Sequence[Stream]:
        """The same records; those that may be read only once are in memory if this process will read them."""
        once = any(not stream.scan.rereadable for stream in streams)
        if not (once and records <= self.most_here and native_passes(streams, here=True)):
            return streams
        return tuple(stream.over(self.fetched(stream.scan)) for stream in streams)

    def found(self, streams: Sequence[Stream], sinks: Sequence[WindowedSink], *, records: int) -> NativeFound | None:
        """What the passes over all records find; None if Spark SQL has to read them."""
        is_small = records <= self.most_here
        passes = native_passes(streams, here=is_small)
        given = self._given(streams, passes, is_small=is_small) if passes else None
        return None if given is None else found_natively(given, streams, passes, sinks, self.writers)

    def _given(self, streams: Sequence[Stream], passes: Sequence[NativePass], *, is_small: bool) -> Given | None:
        """What the passes give; None if they bring back rows and cannot run here."""
        given = given_here(streams, passes, most=self.most_here) if is_small else None
        if given is not None:
            return given
        # Spark's heap has a bound for what workers bring back, and they bring back no rows.
        passes = native_passes(streams, here=False) if is_small else passes
        return given_by_spark(streams, passes, self.writers) if passes else None
