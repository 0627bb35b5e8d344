"""Reads the log again for the keys that a repair touches: all of their records since the first of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.log.scan import Scan
from tidemill.core.plan.amendments import Ranges
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.work import BackfillStep, replay_of
from tidemill.core.sql.text import quoted
from tidemill.engine.aggregate.input_stream import PLACE, Stream, entering
from tidemill.engine.aggregate.native_found import NativeFound
from tidemill.engine.aggregate.native_reading import NativeReading
from tidemill.engine.publish.firings import Firings
from tidemill.engine.spark.query import having_key
from tidemill.tables.keys import with_key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """What a repair reads again: `reads` by topic, each with its scan.

    `aside` has, by published table, the records that do not count in it: `PLACE` of each.
    """

    reads: Ranges
    scans: Mapping[str, Scan]
    aside: Mapping[str, pa.Table]


@dataclass(frozen=True)
class KeyReplay:
    """Finds all records of the keys that a repair touches, for `firings` to fold them again.

    It reads the log `natively`, with DuckDB if it can.
    """

    firings: Firings
    again: Again
    reading: NativeReading
    natively: bool

    @property
    def _records(self) -> int:
        return sum(len(r) for ranges in self.again.reads.values() for r in ranges)

    @cached_property
    def _streams(self) -> Sequence[Stream]:
        """The streams of a backfill that reads it."""
        flow, plan = self.firings.flow, self.firings.plan
        tables = [sink.table for sink in flow.sinks if isinstance(sink, FiringSink)]
        job = Backfill(since=plan.batch_id, left={}, supersedes=(), by="", replay=replay_of(plan.work))
        stream = partial(
            Stream.of,
            flow,
            plan=replace(plan, work=BackfillStep(job=job, reads=self.again.reads)),
            writer=self.reading.writers.spark,
            histories=self.firings.histories,
            tables=tables,
        )
        scans = self.again.scans
        return [stream(source=i, scan=scans[i.topic]) for i in flow.inputs if i.topic in scans]

    @cached_property
    def _kept(self) -> Sequence[Stream]:
        """The same streams for jobs of Spark: read once, whichever tables take the rows."""
        return [stream.kept(self.reading.writers.spark) for stream in self._streams]

    @cached_property
    def _found(self) -> NativeFound | None:
        if not self.natively:
            return None
        streams = self.reading.held(self._streams, records=self._records)
        return self.reading.found(streams, (), records=self._records)

    def here(self, sink: FiringSink, own: pa.Table) -> pa.Table | None:
        """The records of the keys of the repair's `own` records, in this process; None if Spark has to read them."""
        if not own.num_rows:
            return own
        if self._found is None:
            return None
        keys, rows = own.select(list(sink.keys or PLACE)), self._found.rows[sink.table]
        self.firings.touch(sink, keys)
        rows = rows.take(pa.array(with_key_of(rows, keys, sink.keys)))
        left = np.ones(rows.num_rows, np.bool_)
        left[with_key_of(rows, self.again.aside[sink.table], PLACE)] = False
        return rows.filter(pa.array(left))

    def frame(self, sink: FiringSink, own: DataFrame) -> DataFrame:
        """The same as rows of Spark."""
        writers = self.reading.writers
        keys = writers.in_job(own.select(*map(quoted, sink.keys or PLACE)).distinct())
        if not keys.num_rows:
            return own
        self.firings.touch(sink, keys)
        aside = self.again.aside[sink.table]
        without = writers.frame([writers.in_driver(aside)]) if aside.num_rows else None
        rows = entering(self._kept, sink, without)
        assert rows is not None
        return having_key(rows, writers.frame([writers.in_driver(keys)]), sink.keys) if sink.keys else rows
