"""The rows of one input with the columns of every branch, and the counts that are taken as they pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial, reduce

from pyspark.sql import DataFrame, SparkSession

from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import Sink
from tidemill.core.log.scan import Scan
from tidemill.core.plan.amendments import Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.engine.aggregate.branches import Branch, behind_then, branch_out, branches_of, unpack
from tidemill.engine.aggregate.counting import Counter, Counts
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.read.segments import Segments
from tidemill.engine.read.source import most_tasks, records
from tidemill.engine.read.typed_rows import DecodeBatches, checked, decoded, read_segments
from tidemill.engine.spark.query import queries
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.spark_writer import SparkWriter

_NONE: Mapping[str, History] = {}

PLACE = ("_topic", "_partition", "_offset")
"""The columns that say which record a row comes from."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The rows of one input: `counted` for the first job, `side_outputs` for rows that must be put aside.

    `reads` gives the log's records, not yet decoded: once, for this stream and those that are made of it.
    """

    writer: SparkWriter
    source: Input
    scan: Scan
    decode: DecodeBatches
    statements: tuple[str, ...]
    branches: tuple[Branch, ...]
    counter: Counter
    reads: Callable[[], DataFrame]
    cached: DataFrame | None = None

    @staticmethod
    def of(  # noqa: PLR0913, PLR0917  all that its rows depend on
        flow: Flow,
        source: Input,
        plan: BatchPlan,
        scan: Scan,
        writer: SparkWriter,
        histories: Mapping[str, History] = _NONE,
        tables: Collection[str] | None = None,
    ) -> Stream:
        """The stream of an input in a batch; nothing runs yet.

        `histories` are those of the tables of firings that the batch computes again; `tables` are the only ones that
        take its rows.
        """
        if tables is None and isinstance(plan.work, Repair) and plan.work.only is not None:
            tables = (plan.work.only,)
        paths = [(b, p) for b, p in branches_of(flow, source, plan) if tables is None or b.sink.table in tables]
        branches = tuple(branch for branch, _ in paths)
        then = {
            behind_then(number): partial(histories[sink.table].watermarks_of, source.topic)
            for number, sink in enumerate(flow.sinks)
            if sink.table in histories
        }
        decode = replace(DecodeBatches.of(flow, source, plan), then=then)
        columns = [f.name for f in decode.decoder.schema]
        statements = branch_out(checked(source, decode.times), columns, paths, marked=source.watermark is not None)
        partitions = sorted({r.topic_partition.partition for r in plan.ranges(source.topic)})
        counter = Counter(source, partitions, branches)
        return Stream(writer, source, scan, decode, statements, branches, counter, _reads(writer, scan))

    @property
    def spark(self) -> Spark:
        """The Spark that reads it."""
        return self.writer.spark

    @property
    def session(self) -> SparkSession:
        """The session of its Spark."""
        return self.writer.session

    @property
    def records(self) -> DataFrame:
        """The log's records; Spark looks at their files here."""
        return self.reads()

    @cached_property
    def segments(self) -> Segments | None:
        """The files that Python workers can read by themselves; None if Spark has to."""
        return Segments.of(self.scan)

    @property
    def tasks(self) -> int:
        """About how many tasks read it."""
        return most_tasks(self.scan) if self.segments is None else self.segments.parts

    def over(self, scan: Scan) -> Stream:
        """This stream with the same records, as another scan has them."""
        return self if scan is self.scan else replace(self, scan=scan, reads=_reads(self.writer, scan))

    def diverted(self, reason: str | None) -> Stream:
        """This stream, with every record rejected for `reason`; unchanged when `reason` is None."""
        return self if reason is None else replace(self, decode=replace(self.decode, diverted=reason))

    def kept(self, writer: SparkWriter) -> Stream:
        """This stream with cached rows, for several jobs; `count_kept` computes and counts them."""
        return replace(self, cached=writer.cache(self._rows(self.decode)))

    def count_kept(self) -> None:
        """Count cached rows in a separate job; rows that are not cached are counted by the job that reads them."""
        if self.cached is not None:
            self.counter.count(self.cached)

    @property
    def counted(self) -> DataFrame:
        """All rows, counted by the first action over all of them."""
        return self.counter.attach(self._rows(self.decode)) if self.cached is None else self.cached

    @property
    def rows(self) -> DataFrame:
        """All rows; nothing counts them."""
        return self._rows(self.decode)

    def side_outputs(self, counts: Counts) -> DataFrame:
        """Rows that include all rejected and late ones, with the values of their records."""
        return self._rows(replace(self.decode, only=counts.stray_blocks))

    def _rows(self, decode: DecodeBatches) -> DataFrame:
        segments = self.segments
        read = decoded(self.records, decode) if segments is None else read_segments(self.session, segments, decode)
        return queries(self.session, self.statements, read)


def entering(streams: Sequence[Stream], sink: Sink, without: DataFrame | None) -> DataFrame | None:
    """The rows that enter a sink; None when no record leads to it. `without` has records to leave out, by `PLACE`."""
    read = [(s.counted, [b for b in s.branches if b.sink is sink]) for s in streams]
    parts = [unpack(frame, branches) for frame, branches in read if branches]
    if not parts:
        return None
    rows = reduce(DataFrame.unionByName, parts)
    return rows if without is None else rows.join(without, list(PLACE), "left_anti")


def _reads(writer: SparkWriter, scan: Scan) -> Callable[[], DataFrame]:
    @cache
    def read() -> DataFrame:
        # Spark looks at the files now, not in the first job.
        writer.before_job()
        rows = records(writer.session, scan)
        return rows if scan.rereadable else writer.cache(rows)

    return read
