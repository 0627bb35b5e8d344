"""One attempt at a batch: the steps that touch records and tables. `tidemill.run.batch` calls them in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar, assert_never

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink, updates_rows
from tidemill.core.log.scan import Scan
from tidemill.core.plan.amendments import Fold, Repair, Rewind, Switch
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import BackfillStep, Live, Reading
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.aggregate.input_stream import Stream, entering
from tidemill.engine.aggregate.native_plan import nothing_here
from tidemill.engine.aggregate.native_reading import NativeReading
from tidemill.engine.aggregate.native_types import checked_natively
from tidemill.engine.aggregate.types import check_types, empty_rows
from tidemill.engine.aggregate.window_sql import partial_aggregates
from tidemill.engine.aggregating import Aggregating
from tidemill.engine.key_replay import Again, KeyReplay
from tidemill.engine.native_aggregation import NativeAggregation
from tidemill.engine.publish.beside import Beside
from tidemill.engine.publish.firings import Firings
from tidemill.engine.publish.publishing import Publisher, own_values
from tidemill.engine.publish.putting_aside import put_aside
from tidemill.engine.publish.side_tables import SideOutputs
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.publish.timing_column import timed
from tidemill.engine.publish.window_results import Fired, Windows
from tidemill.engine.read.fitted import fitted
from tidemill.engine.slice_folding import fold_slices
from tidemill.engine.slice_writer import SliceWriter
from tidemill.engine.spark.session import Spark
from tidemill.engine.steps import Aggregated, Published, Read, Staged
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.staged_rows import RowWriters
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import Uris


@dataclass(kw_only=True)
class Attempt:
    """The work of one attempt: each step takes the result of the step before.

    `scans` has the topics with records to read; `fetched` may bring those of a scan into memory. `diverted` is the
    reason to reject every record, if there is one. If `given_up`, the attempt reads nothing: an earlier attempt may
    have read the records, and each may count at most once. `before_job` is called before each job of Spark. `histories`
    has the batches to fold again, for each table of firings that the plan computes anew; in a repair, `again` has what
    the log holds of them. `aggregate_by` is the setting `aggregate`; batches of up to `driver_records` records need no
    Spark.
    """

    merging: ClassVar[type[Windows]] = Windows
    """What merges windows."""

    flow: Flow
    plan: BatchPlan
    number: int
    scans: Mapping[str, Scan]
    spark: Spark
    uris: Uris
    driver_rows: int
    driver_records: int = 0
    writer: str | None = None
    aggregate_by: str = "auto"
    diverted: str | None = None
    given_up: bool = False
    fetched: Callable[[Scan], Scan] = lambda scan: scan
    before_job: Callable[[], None] = lambda: None
    histories: Mapping[str, History] = field(default_factory=dict)
    again: Again | None = None

    def __post_init__(self) -> None:
        self.expected = ExpectedVersions(plan=self.plan, attempt=self.number)
        self.writers = self.open_writers()
        self.publisher = Publisher(
            flow=self.flow, plan=self.plan, uris=self.uris, writers=self.writers, expected=self.expected
        )
        self.slices = SliceWriter(plan=self.plan, number=self.number, uris=self.uris, publisher=self.publisher)
        self.firings = Firings(
            flow=self.flow,
            plan=self.plan,
            uris=self.uris,
            writers=self.writers,
            expected=self.expected,
            histories=self.histories,
        )

    def open_writers(self) -> RowWriters:
        """New writers, which carry rows from jobs to tables."""
        return RowWriters(self.spark, driver_rows=self.driver_rows, writer=self.writer, before_job=self.before_job)

    def windows(self, states: Mapping[str, State]) -> Windows:
        """An object that merges windows; `states` are state tables that are already open."""
        return self.merging(
            plan=self.plan,
            uris=self.uris,
            writers=self.writers,
            expected=self.expected,
            states=dict(states),
        )

    @staticmethod
    def check_types(spark: Spark, flow: Flow, uris: Uris, *, natively: bool) -> None:
        """Refuse a declaration whose types do not fit contracts or tables; `natively`, without Spark if possible."""
        if not (natively and checked_natively(flow, uris)):
            check_types(spark.session, flow, uris)

    def read(self) -> Read:
        """Step 2: describe how the planned records become rows; they are read in step 3."""
        if self.given_up:
            return Read()
        inputs = [i for i in self.flow.inputs if i.topic in self.scans]
        stream = partial(Stream.of, self.flow, histories=self.histories, plan=self.plan, writer=self.writers.spark)
        streams = (stream(source=i, scan=self.scans[i.topic]) for i in inputs)
        return Read(tuple(each.diverted(self.diverted) for each in streams))

    def aggregate(self, read: Read) -> Aggregated:
        """Step 3: write partial aggregates to state, and hold rows for tables without windows."""
        match self.plan.work:
            case Fold() as fold:
                state = fold_slices(self.flow, fold, self.windows({}), self.firings, self.slices)
                return Aggregated(read=read, counts=self.count(read), **vars(state))
            case Rewind() | Switch():
                return Aggregated(read=read, counts=self.count(read))
            case Live() | Repair() | BackfillStep() | Reading():
                return self._shed(read) if self.given_up else self._aggregate(read)
            case _:
                assert_never(self.plan.work)

    def _aggregate(self, read: Read) -> Aggregated:
        if self.aggregate_by != "auto":
            return self._in_spark(read)
        native = NativeAggregation(self.flow, self._reading, self.slices, self.firings, self.key_replay)
        return native.over(read := native.held(read)) or self._in_spark(read)

    def _in_spark(self, read: Read) -> Aggregated:
        read = read.kept(self.flow, self.writers.spark, often=self.again is not None)
        for stream in read.streams:
            with boundary(f"input:{stream.source.topic}", self.plan.batch_id):
                stream.count_kept()
        made = Aggregating(self.slices)
        for sink, job in ((sink, self.job(read, sink)) for sink in self.flow.sinks):
            if job is None:
                continue
            with boundary(f"records:{sink.table}", self.plan.batch_id):
                staged = self.writers.stage(job, at_most=self.plan.records)
            made.take(sink, staged)
        return made.result(read, self.count(read))

    def _shed(self, read: Read) -> Aggregated:
        """Count all records as shed, read none: an earlier attempt may have read them, and each counts at most once."""
        lengths = {topic: sum(map(len, ranges)) for topic, ranges in self.plan.reads.items()}
        shed = {topic: Counts(account=Account(read=n, shed=n)) for topic, n in lengths.items()}
        return Aggregated(read=read, counts={**self.count(read), **shed})

    def job(self, read: Read, sink: Sink, without: DataFrame | None = None) -> DataFrame | None:
        """The job of step 3 for a sink, which has not run yet; None when no record leads to the sink.

        `without` has the records to leave out, by `_topic`, `_partition` and `_offset`.
        """
        rows = entering(read.streams, sink, without)
        match sink:
            case _ if rows is None:
                return None
            case RowSink():
                # In the types of its contract, and with what does not fit them.
                return rows.selectExpr(*fitted(sink.contract.fields))
            case WindowedSink():
                return partial_aggregates(rows, sink)
            case FiringSink():
                rows = rows if self.key_replay is None else self.key_replay.frame(sink, rows)
                return self.firings.job(sink, rows, self.firings.kept(sink))
            case _:
                assert_never(sink)

    @cached_property
    def key_replay(self) -> KeyReplay | None:
        """What finds the records of the keys of a repair; None where nothing is replayed."""
        of = partial(KeyReplay, self.firings, reading=self._reading, natively=self.aggregate_by == "auto")
        return None if self.again is None else of(again=self.again)

    @property
    def _reading(self) -> NativeReading:
        return NativeReading(self.writers, self.driver_records, self.fetched)

    def count(self, read: Read) -> Mapping[str, Counts]:
        """The counts of the pass, by topic, after its jobs have run; topics without records have empty counts."""
        found = {s.source.topic: s.counter.result() for s in read.streams}
        return {i.topic: found.get(i.topic, Counts(account=Account())) for i in self.flow.inputs}

    def stage(self, found: Aggregated, position: Position) -> Staged:
        """Step 4: stage the rows to publish when this attempt moves the pipeline to `position`."""
        windows, rows = self.windows(found.states), list[SinkRows]()
        fires = [(sink, self._fired(sink, found, position, windows)) for sink in self.flow.sinks]
        for sink, fired in fires:
            if (staged := fired.windows) is None:
                continue
            if isinstance(sink, WindowedSink):
                staged = timed(staged, sink, self.plan, position)
            if isinstance(sink, StatefulSink):
                staged = staged.stamped(own_values(self.plan))
            rows.append(SinkRows(sink, staged, fired.gone, self.firings.touched.get(sink.table)))
        open_since = {sink.table: fired.open_since for sink, fired in fires if fired.open_since is not None}
        unfit = (*windows.unfit, *self.firings.results.unfit)
        return Staged(tuple(rows), unfit, open_since, self.firings.noted)

    def _fired(self, sink: Sink, found: Aggregated, position: Position, windows: Windows) -> Fired:
        if isinstance(sink, RowSink):
            return Fired(found.rows.get(sink.table))
        match self.plan.work:
            case Rewind() | Switch() | Fold():
                return Fired()
            case _ if isinstance(sink, FiringSink):
                return self._firings(sink, found, position)
            case BackfillStep():
                job = self._job_done(found)
                return Fired(windows.fire_again(sink, job, position.slices) if job and job.complete else None)
            case Live() | Repair() | Reading():
                partials, touched = found.partials.get(sink.table), found.touched.get(sink.table, [])
                fired = windows.fire(sink, position, partials, touched)
                self.slices.nodes(sink, fired.nodes, windows.merged.get(sink.table))
                return fired
            case _:
                assert_never(self.plan.work)

    def _firings(self, sink: FiringSink, found: Aggregated, position: Position) -> Fired:
        nothing = partial(self.of_nothing, sink)
        fires = self.firings.fire(sink, found.ordered.get(sink.table), position.watermark_of(sink.table), nothing)
        self.slices.keys(sink, fires.state)
        if (keys := self.firings.touched.get(sink.table)) is not None:
            fires = self.publisher.of_keys(sink, fires, keys)
        return Fired(fires.rows, gone=fires.gone)

    def of_nothing(self, sink: FiringSink) -> pa.Table:
        """One row: the partial aggregates of a table of firings over no record."""
        found = nothing_here(self.flow, sink) if self.aggregate_by == "auto" else None
        if found is not None:
            return found
        return self.firings.results.of_nothing(sink, empty_rows(self.spark.session, self.flow, sink))

    def _job_done(self, found: Aggregated) -> Backfill | None:
        """The plan's backfill after this attempt; None for other plans."""
        job = self.plan.job
        return None if job is None else job.after(self.plan.batch_id, self.number, found.panes)

    def beside(self, found: Aggregated, item: SinkRows) -> Beside:
        """What finds the rows that a table keeps beside staged ones."""
        job = self._job_done(found)
        return Beside(plan=self.plan, uris=self.uris, writers=self.writers, item=item, job=job)

    def publish(self, found: Aggregated, staged: Staged) -> Published:
        """Step 6: write rejected and late rows, then every published table; each at most once for this batch."""
        reasons: Mapping[str, int] = {}
        rows = staged.rows
        match self.plan.work:
            case Rewind() as rewind:
                self.publisher.go_back(rewind)
            case Switch():
                self.publisher.switch()
                rows = self._switched()
            case Live() | Repair() | BackfillStep() | Fold() | Reading():
                reasons = put_aside(self.publisher, self.side_outputs(found), self._job_done(found))
                by_table = {item.sink.table: item for item in staged.rows}
                for sink in self.flow.sinks:
                    self.publisher.publish(sink, by_table.get(sink.table), self._job_done(found))
            case _:
                assert_never(self.plan.work)
        if self.given_up:
            self.publisher.leave()
        return Published(versions=self.publisher.versions, marks=self.publisher.written, reasons=reasons, rows=rows)

    def _switched(self) -> tuple[SinkRows, ...]:
        """The rows to send to topics after a switch: all windows as they are now."""
        sinks = [s for s in self.flow.sinks if updates_rows(s) and s.topic is not None]
        return tuple(SinkRows(sink, self.publisher.built(sink)) for sink in sinks)

    def side_outputs(self, found: Aggregated) -> SideOutputs:
        """The rows of the pass that go to quarantine or to the late table."""
        before = self.publisher.superseded_aside
        ordered = () if self.plan.live else self.flow.sinks
        firings = tuple(sink.table for sink in ordered if isinstance(sink, FiringSink))
        return SideOutputs(found.read.streams, found.counts, self.plan, self.writers, before, firings)

    def release(self) -> None:
        """Release everything that is cached on the executors."""
        self.writers.release()
