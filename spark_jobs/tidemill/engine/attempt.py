"""One attempt at a batch: the steps that touch records and tables. Their order is in `tidemill.run.batch`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession

from tidemill.core.bind.flow import Flow, RowSink, Sink, WindowedSink
from tidemill.core.contract.verdict import CheckResult
from tidemill.core.log.scan import Scan
from tidemill.core.plan.jobs import Backfill
from tidemill.core.plan.kinds import SideOutput
from tidemill.core.plan.plan import BatchPlan, Kind
from tidemill.core.plan.position import Position, TableMark
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.repair.planning import is_repair_of
from tidemill.core.time.spans import PaneSpan
from tidemill.engine.aggregate.branches import unpack
from tidemill.engine.aggregate.counting import Counts
from tidemill.engine.aggregate.input_stream import Stream
from tidemill.engine.aggregate.node_sql import of_nodes
from tidemill.engine.aggregate.types import check_types
from tidemill.engine.aggregate.window_sql import SLICE_COLUMNS, partial_aggregates
from tidemill.engine.publish.publishing import Publisher, own_values
from tidemill.engine.publish.side_tables import SideOutputs, Taken
from tidemill.engine.publish.timed import timed
from tidemill.engine.publish.window_results import Windows
from tidemill.engine.read.fitted import fitted, told
from tidemill.engine.spark.session import pin
from tidemill.engine.storage.expected_versions import ExpectedVersions
from tidemill.engine.storage.staged_rows import RowWriters, StagedRows
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import Uris

_STAGING_NOTHING = (Kind.FOLD, Kind.REWIND, Kind.SWITCH)
"""Batches that compute no rows to publish: whole tables go back or over, or nothing is published."""


@dataclass(frozen=True, slots=True)
class SinkRows:
    """The rows that a sink would publish. Nobody sees them yet."""

    sink: Sink
    staged: StagedRows

    @property
    def rows(self) -> Any:
        """An Arrow table, or a DataFrame where Spark writes."""
        return self.staged.rows

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.staged.count


@dataclass(kw_only=True)
class Attempt:
    """The work of one attempt. `scans` has the topics with records to read.

    `diverted` is the reason for which every record is rejected, if there is one. An attempt that has `given_up` reads
    nothing: an earlier one may have, and every record counts at most once. `before_job` is called before each job of
    Spark.
    """

    flow: Flow
    plan: BatchPlan
    number: int
    scans: Mapping[str, Scan]
    session: SparkSession
    uris: Uris
    driver_rows: int
    writer: str | None = None
    reasons: Mapping[str, int] = field(default_factory=dict)
    diverted: str | None = None
    given_up: bool = False
    before_job: Callable[[], None] = lambda: None
    _streams: tuple[Stream, ...] = ()
    _partials: dict[str, StagedRows] = field(default_factory=dict)
    _touched: dict[str, list[int]] = field(default_factory=dict)
    _rows: dict[str, StagedRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expected = ExpectedVersions(plan=self.plan, attempt=self.number)
        self.writers = RowWriters(
            self.session, driver_rows=self.driver_rows, writer=self.writer, before_job=self.before_job
        )
        self._windows = Windows(
            session=self.session, plan=self.plan, uris=self.uris, writers=self.writers, expected=expected
        )
        self._publisher = Publisher(
            flow=self.flow, plan=self.plan, uris=self.uris, writers=self.writers, expected=expected
        )
        self._expected = expected

    @staticmethod
    def check_types(session: SparkSession, flow: Flow, uris: Uris) -> None:
        """Refuses a declaration whose values could lose something, before a plan is written. See `engine.types`."""
        pin(session)
        check_types(session, flow, uris)

    def read(self) -> None:
        """Step 2: describe how the planned records become rows; Spark starts with the first job of step 3."""
        pin(self.session)
        # Spark looks for the files that it is to read at once.
        self.before_job()
        inputs = [i for i in self.flow.inputs if i.topic in self.scans]
        streams = [
            Stream.of(self.flow, i, self.plan, self.scans[i.topic], self.writers.spark).diverted(self.diverted)
            for i in inputs
        ]
        once = len(self.flow.sinks) == 1 and all(len(s.branches) == 1 for s in streams)
        self._streams = tuple(s if once else s.kept(self.writers.spark) for s in streams)

    def aggregate(self) -> None:
        """Step 3: partial aggregates become state; rows for unwindowed tables are held."""
        for stream in self._streams:
            with boundary(f"input:{stream.source.topic}", self.plan.batch_id):
                stream.count_kept()
        for sink in self.flow.sinks:
            if self.plan.fold is not None and isinstance(sink, WindowedSink):
                self._append_nodes(sink, self._windows.folded_nodes(sink, self.plan.fold))
            staged = self._new(sink)
            if staged is None:
                continue
            match sink:
                case WindowedSink():
                    staged = self._partials[sink.table] = staged.stamped(self._slice())
                    if staged.count:
                        self._touched[sink.table] = staged.writer.distinct(staged.rows, "pane_start")
                        self._append_state(sink, staged)
                case RowSink():
                    staged, unfit = told(staged, sink.table, sink.contract)
                    self._windows.unfit += unfit
                    self._rows[sink.table] = staged.stamped(own_values(self.plan))

    def _new(self, sink: Sink) -> StagedRows | None:
        """What this batch brings to a sink: from the records that it reads, or the slices that it folds."""
        if self.plan.fold is not None:
            return self._windows.folded(sink, self.plan.fold) if isinstance(sink, WindowedSink) else None
        job = self._job(sink)
        if job is None:
            return None
        with boundary(f"records:{sink.table}", self.plan.batch_id):
            return self.writers.stage(job, at_most=self.plan.records)

    def _slice(self) -> dict[str, pa.Scalar]:
        values = (self.plan.batch_id, self.number)
        return {c: pa.scalar(value, pa.int64()) for c, value in zip(SLICE_COLUMNS, values, strict=True)}

    def _append_state(self, sink: WindowedSink, staged: StagedRows) -> None:
        spec = self.uris.state(sink, staged.writer.fields(staged.rows))
        with boundary(f"state:{sink.table}", self.plan.batch_id):
            handle = self._publisher.append_slice(spec, self._expected.state(sink), staged)
            self._windows.states[sink.table] = State(spec=spec, handle=handle)

    def _append_nodes(self, sink: WindowedSink, nodes: StagedRows | None) -> None:
        """Panes merged ahead, in the slice of this attempt."""
        if nodes is None or not nodes.count:
            return
        names = ("pane_level", "pane_start", *of_nodes(sink), *SLICE_COLUMNS)
        staged = nodes.stamped(self._slice()).picked({name: name for name in names})
        with boundary(f"merged:{sink.table}", self.plan.batch_id):
            spec = self.uris.merged(sink, staged.writer.fields(staged.rows))
            self._publisher.append_slice(spec, self._expected.merged(sink), staged)

    def jobs(self, without: DataFrame | None = None) -> Mapping[str, DataFrame]:
        """The job of step 3 for each published table, described but not run; ask after step 2.

        `without` names records to leave out, by `_topic`, `_partition` and `_offset`.
        """
        return {s.table: job for s in self.flow.sinks if (job := self._job(s, without)) is not None}

    def _job(self, sink: Sink, without: DataFrame | None = None) -> DataFrame | None:
        streams = [(s.counted, [b for b in s.branches if b.sink is sink]) for s in self._streams]
        parts = [unpack(frame, branches) for frame, branches in streams if branches]
        if not parts:
            return None
        rows = reduce(DataFrame.unionByName, parts)
        if without is not None:
            rows = rows.join(without, ["_topic", "_partition", "_offset"], "left_anti")
        return _as_published(rows, sink) if isinstance(sink, RowSink) else partial_aggregates(rows, sink)

    @cached_property
    def counts(self) -> Mapping[str, Counts]:
        """What the pass counted, by topic; topics without records have empty counts. Ask after step 3."""
        found = {s.source.topic: s.counter.result() for s in self._streams}
        empty = Counts(account=Account())
        if self.given_up:
            lengths = {topic: sum(map(len, ranges)) for topic, ranges in self.plan.reads.items()}
            found = {topic: Counts(account=Account(read=n, shed=n)) for topic, n in lengths.items()}
        return {i.topic: found.get(i.topic, empty) for i in self.flow.inputs}

    @property
    def unfit(self) -> tuple[CheckResult, ...]:
        """Broken rules for values that do not fit the types of their contract. Ask after step 4."""
        return tuple(self._windows.unfit)

    @property
    def versions(self) -> Mapping[str, int]:
        """The version of each table that this attempt wrote."""
        return self._publisher.versions

    @property
    def marks(self) -> Mapping[str, TableMark]:
        """How this attempt left each table that it wrote."""
        return self._publisher.written

    @property
    def panes(self) -> Mapping[str, PaneSpan]:
        """Where the state of this attempt lies, by published table. Ask after step 3."""
        return {table: PaneSpan(min(starts), max(starts)) for table, starts in self._touched.items() if starts}

    @property
    def _job_done(self) -> Backfill | None:
        """The backfill of the plan with this attempt's slice."""
        job = self.plan.backfill
        return None if job is None else job.after(self.plan.batch_id, self.number, self.panes)

    def stage(self, position: Position) -> tuple[SinkRows, ...]:
        """Step 4: the rows to publish when this attempt moves the pipeline to `position`."""
        if self.plan.kind in _STAGING_NOTHING:
            return ()
        found = ((sink, self._staged(sink, position)) for sink in self.flow.sinks)
        return tuple(SinkRows(sink, staged) for sink, staged in found if staged is not None)

    def _staged(self, sink: Sink, position: Position) -> StagedRows | None:
        job = self._job_done
        if isinstance(sink, RowSink):
            return self._rows.get(sink.table)
        if job is None:
            partials, touched = self._partials.get(sink.table), self._touched.get(sink.table, [])
            found = self._windows.fire(sink, position, partials, touched)
            self._append_nodes(sink, found.nodes)
            fired = found.windows
        elif job.complete:
            fired = self._windows.fire_again(sink, job, position.slices)
        else:
            fired = None
        return None if fired is None else timed(fired, sink, self.plan, position).stamped(own_values(self.plan))

    def publish(self, staged: tuple[SinkRows, ...]) -> None:
        """Step 6: rejected and late rows, then every published table; each at most once for this batch."""
        if self.plan.rewind is not None:
            self._publisher.go_back()
        elif self.plan.switch is not None:
            self._publisher.switch()
        else:
            self._publish(staged)
        if self.given_up:
            self._publisher.leave()

    def _publish(self, staged: tuple[SinkRows, ...]) -> None:
        self._put_aside()
        rows = {item.sink.table: item.staged for item in staged}
        for sink in self.flow.sinks:
            self._publisher.publish(sink, rows.get(sink.table), self._job_done)

    def to_send(self, staged: tuple[SinkRows, ...]) -> tuple[SinkRows, ...]:
        """What readers of topics have to be told: what is staged; of a switch, all windows as they are now."""
        if self.plan.switch is None:
            return staged
        sinks = [s for s in self.flow.sinks if isinstance(s, WindowedSink) and s.topic is not None]
        return tuple(SinkRows(sink, self._publisher.built(sink)) for sink in sinks)

    def side_outputs(self) -> SideOutputs:
        """What the pass found that goes to quarantine or to the late table."""
        return SideOutputs(self._streams, self.counts, self.plan, self.writers, self._publisher.superseded_aside)

    def _put_aside(self) -> None:
        side_outputs = self.side_outputs()
        rejected = side_outputs.rejected(self.uris.quarantine())
        self.reasons = rejected.writer.tally(rejected.rows) if rejected else {}
        refused = None
        if is_repair_of(self.plan, SideOutput.LATE) and rejected is not None:
            refused, rejected = rejected.writer.arrow(rejected.rows), None
        for output, spec, staged in (
            (SideOutput.QUARANTINE, self.uris.quarantine(), rejected),
            (SideOutput.LATE, self.uris.late(), side_outputs.late(self.uris.late())),
        ):
            if self.plan.repair is not None and is_repair_of(self.plan, output):
                self._publisher.take_out(Taken(spec, self.plan, self.plan.repair), refused, staged)
            else:
                self._publisher.write_side_output(spec, staged, self._job_done)

    def release(self) -> None:
        """Let go of what is cached on the executors."""
        self.writers.release()


def _as_published(rows: DataFrame, sink: RowSink) -> DataFrame:
    """The rows of the sink in the types of its contract, and what of them does not fit."""
    return rows.selectExpr(*fitted(sink.contract.fields))
