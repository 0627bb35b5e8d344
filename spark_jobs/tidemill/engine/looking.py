"""Reads the records of a plan before it is written, to know how far in event time they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tidemill.core.bind.flow import Flow, Input
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.log.scan import Scan
from tidemill.core.plan.alignment import Seen
from tidemill.core.plan.plan import BatchPlan
from tidemill.engine.aggregate.branches import branch_out
from tidemill.engine.aggregate.counting import Counter, Counts
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.native_reading import NativeReading
from tidemill.engine.read.typed_rows import checked


@dataclass(frozen=True, kw_only=True)
class Looking:
    """A pass over records that decodes and checks them, and counts how far they come. It writes nothing.

    `natively` is whether DuckDB may do it; otherwise, and where it cannot, a job of Spark does.
    """

    reading: NativeReading
    natively: bool

    def look(
        self, flow: Flow, plan: BatchPlan, scans: Mapping[str, Scan], bounds: Mapping[TopicPartition, int]
    ) -> Seen:
        """What the planned records say; `scans` say how to read each topic, `bounds` what is too far."""
        streams = [
            self._stream(flow, source, plan, scans[source.topic], bounds)
            for source in flow.inputs
            if source.topic in scans
        ]
        found = self._counts(streams, plan.records)
        return Seen(
            reached=dict(item for counts in found for item in counts.reached.items()),
            too_far=dict(item for counts in found for item in counts.too_far.items()),
        )

    def _counts(self, streams: Sequence[Stream], records: int) -> Sequence[Counts]:
        if self.natively:
            streams = self.reading.held(streams, records=records)
            if (found := self.reading.found(streams, (), records=records)) is not None:
                return list(found.counts.values())
        for stream in streams:
            stream.counter.count(stream.rows)
        return [stream.counter.result() for stream in streams]

    def _stream(
        self, flow: Flow, source: Input, plan: BatchPlan, scan: Scan, bounds: Mapping[TopicPartition, int]
    ) -> Stream:
        """The records of an input, which no table takes."""
        whole = Stream.of(flow, source, plan, scan, self.reading.writers.spark)
        columns = [field.name for field in whole.decode.decoder.schema]
        rows = branch_out(checked(source, whole.decode.times), columns, (), marked=source.watermark is not None)
        partitions = sorted({each.topic_partition.partition for each in plan.ranges(source.topic)})
        own = {tp.partition: bound for tp, bound in bounds.items() if tp.topic == source.topic}
        return replace(whole, statements=rows, branches=(), counter=Counter(source, partitions, (), own))
