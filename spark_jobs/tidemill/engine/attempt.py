"""One attempt at a batch: the steps that touch records and tables. Their order is in `tidemill.batch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemill.core.account import Account
from tidemill.core.codec import fingerprint
from tidemill.core.failpoints import reach
from tidemill.core.flow import Flow, Input, RowSink, Sink, WindowedSink
from tidemill.core.plan import BatchPlan
from tidemill.core.scan import Scan
from tidemill.core.schema import Field, spark_type
from tidemill.core.times import moment
from tidemill.engine.branches import Branch, branch_out, branches_of, unpack
from tidemill.engine.counting import Counter, Counts
from tidemill.engine.firing import Firing
from tidemill.engine.lanes import DriverLane, Lane, SparkLane
from tidemill.engine.places import OWN_FIELDS, Uris
from tidemill.engine.rows import typed_rows
from tidemill.engine.source import records
from tidemill.engine.state import PaneRange, extent, read_panes, state_fields
from tidemill.engine.strays import late_rows, rejected_rows
from tidemill.engine.tables.create import ensure_table
from tidemill.engine.tables.protocol import Between, TableSpec, Transaction, Written
from tidemill.engine.windowing import merged_windows, partial_aggregates


@dataclass(frozen=True, slots=True)
class Held:
    """Rows after a Spark job, and the lane that carries them."""

    lane: Lane[Any]
    rows: Any
    count: int


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows that a sink would publish. Nobody sees them yet."""

    sink: Sink
    held: Held

    @property
    def rows(self) -> Any:
        """An Arrow table, or a DataFrame where Spark writes."""
        return self.held.rows

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.held.count


@dataclass(frozen=True, slots=True)
class _Stream:
    """The rows of one input with all branches on them, counted as they pass by."""

    source: Input
    frame: DataFrame
    counter: Counter
    branches: tuple[Branch, ...]


@dataclass(kw_only=True)
class Attempt:
    """The work of one attempt. `scans` has the topics with records to read."""

    flow: Flow
    plan: BatchPlan
    number: int
    scans: Mapping[str, Scan]
    session: SparkSession
    uris: Uris
    driver_rows: int
    writer: str | None = None
    versions: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    _streams: tuple[_Stream, ...] = ()
    _partials: dict[str, Held] = field(default_factory=dict)
    _rows: dict[str, Held] = field(default_factory=dict)
    _counts: dict[str, Counts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._driver, self._spark = DriverLane(self.session), SparkLane(self.session)
        self._plan_hash = fingerprint(self.plan)

    def read(self) -> None:
        """Step 2: describe how the planned records become rows; Spark starts with the first job of step 3."""
        self._streams = tuple(self._stream(i) for i in self.flow.inputs if i.topic in self.scans)

    def _stream(self, source: Input) -> _Stream:
        paths = branches_of(self.flow, source)
        branches = tuple(branch for branch, _ in paths)
        raw = records(self.session, self.scans[source.topic])
        tolerance = self.flow.spec.future_tolerance
        rows = typed_rows(raw, source, clock=self.plan.clock, future_tolerance=tolerance)
        frame = branch_out(rows, source, paths, watermark=self.plan.lateness_watermark)
        partitions = [r.topic_partition.partition for r in self.plan.topics[source.topic].ranges]
        counter = Counter(source.topic, partitions, branches)
        if len(self.flow.sinks) == 1 and len(branches) == 1:
            frame = counter.attach(frame)
        else:
            # Several jobs need these rows: they are computed once, while they are counted.
            frame = self._spark.cache(frame)
            counter.count(frame)
        return _Stream(source, frame, counter, branches)

    def aggregate(self) -> None:
        """Step 3: partial aggregates become state; rows for unwindowed tables are held."""
        for sink in self.flow.sinks:
            rows = self._rows_of(sink)
            if rows is None:
                continue
            match sink:
                case WindowedSink():
                    partials = partial_aggregates(rows, sink, batch_id=self.plan.batch_id, attempt=self.number)
                    held = self._partials[sink.table] = self._hold(partials)
                    if held.count:
                        self._append_state(sink, state_fields(partials), held)
                case RowSink():
                    self._rows[sink.table] = self._hold(self._as_published(rows, sink))

    def _append_state(self, sink: WindowedSink, fields: tuple[Field, ...], held: Held) -> None:
        spec = self.uris.state(sink, fields)
        ensure_table(spec)
        # No transaction: the slice names the attempt, and an attempt appends once.
        self._written(spec.name, held.lane.table(spec).append(held.rows, transaction=None, plan_hash=self._plan_hash))
        reach(f"state:{sink.table}", self.plan.batch_id)

    def _rows_of(self, sink: Sink) -> DataFrame | None:
        parts = []
        for stream in self._streams:
            branches = [b for b in stream.branches if b.sink is sink]
            if branches:
                parts.append(unpack(stream.frame, branches))
        whole = parts[0] if parts else None
        for part in parts[1:]:
            whole = part if whole is None else whole.unionByName(part)
        return whole

    def jobs(self) -> Mapping[str, DataFrame]:
        """The job of step 3 for each published table, described but not run; ask after step 2."""
        return {s.table: self._job(rows, s) for s in self.flow.sinks if (rows := self._rows_of(s)) is not None}

    def _job(self, rows: DataFrame, sink: Sink) -> DataFrame:
        if isinstance(sink, RowSink):
            return self._as_published(rows, sink)
        return partial_aggregates(rows, sink, batch_id=self.plan.batch_id, attempt=self.number)

    def _as_published(self, rows: DataFrame, sink: RowSink) -> DataFrame:
        typed = [F.expr(f"try_cast(`{f.name}` AS {spark_type(f.type)})").alias(f.name) for f in sink.contract.fields]
        return rows.select(*typed, *self._own_columns())

    def _own_columns(self) -> list[Any]:
        batch, clock = (f.name for f in OWN_FIELDS)
        return [F.lit(self.plan.batch_id).cast("bigint").alias(batch), F.lit(self.plan.clock).alias(clock)]

    def _hold(self, frame: DataFrame, *, at_most: int | None = None) -> Held:
        """Run the job and hold its rows in the lane that fits their number. `at_most` is what is known of it before."""
        bound = self.plan.records if at_most is None else at_most
        if self._lane(bound) is self._driver:
            rows = self._driver.hold(frame)
            return Held(self._driver, rows, self._driver.count(rows))
        cached = self._spark.hold(frame)
        count = self._spark.count(cached)
        if self.writer is None and count <= self.driver_rows:
            return Held(self._driver, self._driver.hold(cached), count)
        return Held(self._spark, cached, count)

    def _lane(self, rows: int) -> Lane[Any]:
        small = rows <= self.driver_rows if self.writer is None else self.writer == self._driver.name
        return self._driver if small else self._spark

    def counts(self) -> Mapping[str, Counts]:
        """What the pass counted, by topic; topics without records have empty counts. Ask after step 3."""
        self._counts = {s.source.topic: s.counter.result() for s in self._streams}
        empty = Counts(account=Account(), max_event_times={}, refused_windows=0, late_rows=0)
        return {i.topic: self._counts.get(i.topic, empty) for i in self.flow.inputs}

    def stage(self, watermark: int) -> tuple[Staged, ...]:
        """Step 4: the rows to publish when the watermark moves to `watermark`."""
        staged = []
        for sink in self.flow.sinks:
            held = self._fire(sink, watermark) if isinstance(sink, WindowedSink) else self._rows.get(sink.table)
            if held is not None:
                staged.append(Staged(sink, held))
        return tuple(staged)

    def _fire(self, sink: WindowedSink, watermark: int) -> Held | None:
        firing = Firing.of(sink, self.plan.lateness_watermark, watermark)
        partials = self._partials.get(sink.table)
        touched = partials.lane.distinct(partials.rows, "pane_start") if partials else []
        ranges = firing.pane_ranges(sink, touched)
        if not ranges:
            return None
        parts = self._panes(sink, ranges)
        # Panes of windows that close may hold many more rows than this batch brought.
        bound = sum(part.count for part in parts) + (partials.count if partials else 0)
        frames = [held.lane.frame([held.rows]) for held in (*parts, *([partials] if partials else []))]
        if not frames:
            return None
        windows = merged_windows(self._spark.frame(frames), sink, firing, batch_id=self.plan.batch_id)
        return self._hold(windows.select("*", *self._own_columns()), at_most=bound * sink.window.panes.overlap)

    def _panes(self, sink: WindowedSink, ranges: Sequence[PaneRange]) -> list[Held]:
        held = extent(self.uris.state_uri(sink), ranges)
        if held is None or not held.rows:
            return []
        lane = self._lane(held.rows)
        spec = self.uris.state(sink, held.fields)
        return [Held(lane, rows, held.rows) for rows in read_panes(lane, spec, ranges, self.plan.position.slices)]

    def publish(self, staged: tuple[Staged, ...]) -> None:
        """Step 6: rejected and late rows, then every published table; each at most once for this batch."""
        self._put_aside()
        for item in staged:
            if item.count:
                spec = self.uris.published_table(item.sink)
                ensure_table(spec)
                self._written(item.sink.table, self._publish(item, spec))
            reach(f"published:{item.sink.table}", self.plan.batch_id)

    def _publish(self, item: Staged, spec: TableSpec) -> Written:
        table = item.held.lane.table(spec)
        transaction = Transaction(f"{self.flow.name}/{item.sink.table}", self.plan.batch_id)
        if isinstance(item.sink, RowSink):
            return table.append(item.rows, transaction=transaction, plan_hash=self._plan_hash)
        starts = item.held.lane.distinct(item.rows, "window_start")
        within = Between(column="window_start", low=moment(min(starts)), high=moment(max(starts) + 1))
        keys = ("window_start", *item.sink.keys)
        return table.upsert(item.rows, keys=keys, within=within, transaction=transaction, plan_hash=self._plan_hash)

    def _put_aside(self) -> None:
        if not sum(c.strays for c in self._counts.values()):
            return
        rejected = [rejected_rows(s.frame, s.source.contract, self.plan) for s in self._streams]
        late = [f for s in self._streams if (f := late_rows(s.frame, s.branches, self.plan)) is not None]
        if any(c.account.rejected for c in self._counts.values()):
            held = self._append_strays(self.uris.quarantine(), rejected)
            self.reasons = held.lane.tally(held.rows, "reasons")
        if late and any(c.late_rows for c in self._counts.values()):
            self._append_strays(self.uris.late(), late)

    def _append_strays(self, spec: TableSpec, frames: list[DataFrame]) -> Held:
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(frame)
        held = self._hold(whole, at_most=sum(c.strays for c in self._counts.values()))
        ensure_table(spec)
        transaction = Transaction(f"{self.flow.name}/{spec.name}", self.plan.batch_id)
        table = held.lane.table(spec)
        self._written(spec.name, table.append(held.rows, transaction=transaction, plan_hash=self._plan_hash))
        reach(spec.name, self.plan.batch_id)
        return held

    def _written(self, table: str, written: Written) -> None:
        self.versions[table] = written.version

    def release(self) -> None:
        """Let go of what is cached on the executors."""
        self._spark.release()
