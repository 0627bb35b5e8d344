"""One attempt at a batch: the steps that touch records and tables. Their order is in `tidemill.batch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tidemill.core.account import Account
from tidemill.core.codec import fingerprint
from tidemill.core.failpoints import boundary
from tidemill.core.flow import Flow, RowSink, Sink, WindowedSink
from tidemill.core.plan import BatchPlan
from tidemill.core.position import TableMark
from tidemill.core.scan import Scan
from tidemill.core.schema import cast_or_null
from tidemill.core.sql import quoted, renamed
from tidemill.core.times import moment
from tidemill.core.watermarks import END
from tidemill.engine.branches import unpack
from tidemill.engine.counting import Counts
from tidemill.engine.firing import Firing
from tidemill.engine.lanes import DriverLane, Lane, SparkLane
from tidemill.engine.marks import Marks
from tidemill.engine.places import OWN_FIELDS, Uris
from tidemill.engine.query import ROWS, query
from tidemill.engine.state import PaneRange, State
from tidemill.engine.strays import late_rows, rejected_rows
from tidemill.engine.streams import Stream
from tidemill.engine.windowing import SLICE_COLUMNS, merged_windows, partial_aggregates
from tidemill.tables.create import ensure_table
from tidemill.tables.known import Known
from tidemill.tables.protocol import Between, TableSpec, Written

_TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass(frozen=True, slots=True)
class Held:
    """Rows after a Spark job, and the lane that carries them."""

    lane: Lane[Any]
    rows: Any
    count: int

    def stamped(self, values: Mapping[str, pa.Scalar]) -> Held:
        """The same rows with more columns, each of one value."""
        return Held(self.lane, self.lane.stamped(self.rows, values), self.count)


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
    marks: dict[str, TableMark] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    _streams: tuple[Stream, ...] = ()
    _partials: dict[str, Held] = field(default_factory=dict)
    _rows: dict[str, Held] = field(default_factory=dict)
    _states: dict[str, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._driver, self._spark = DriverLane(self.session), SparkLane(self.session)
        self._plan_hash, self._known = fingerprint(self.plan), Marks(plan=self.plan, attempt=self.number)

    def read(self) -> None:
        """Step 2: describe how the planned records become rows; Spark starts with the first job of step 3."""
        inputs = [i for i in self.flow.inputs if i.topic in self.scans]
        streams = [Stream.of(self.session, self.flow, i, self.plan, self.scans[i.topic]) for i in inputs]
        once = len(self.flow.sinks) == 1 and all(len(s.branches) == 1 for s in streams)
        self._streams = tuple(s if once else s.kept(self._spark) for s in streams)

    def aggregate(self) -> None:
        """Step 3: partial aggregates become state; rows for unwindowed tables are held."""
        for stream in self._streams:
            with boundary(f"input:{stream.source.topic}", self.plan.batch_id):
                stream.count_kept()
        for sink in self.flow.sinks:
            job = self._job(sink)
            if job is None:
                continue
            with boundary(f"records:{sink.table}", self.plan.batch_id):
                held = self._hold(job)
            match sink:
                case WindowedSink():
                    held = self._partials[sink.table] = held.stamped(self._slice())
                    if held.count:
                        self._append_state(sink, held)
                case RowSink():
                    self._rows[sink.table] = held.stamped(self._own_values())

    def _slice(self) -> dict[str, pa.Scalar]:
        values = (self.plan.batch_id, self.number)
        return {c: pa.scalar(value, pa.int64()) for c, value in zip(SLICE_COLUMNS, values, strict=True)}

    def _append_state(self, sink: WindowedSink, held: Held) -> None:
        spec = self.uris.state(sink, held.lane.fields(held.rows))
        with boundary(f"state:{sink.table}", self.plan.batch_id):
            known = self._known.state(sink)
            state = self._states[sink.table] = State(spec=spec, handle=ensure_table(spec, known=known))
            # Readers tell slices apart, but not what is twice in one: a ledger that lost its end has it planned again.
            self._append(held, state.spec, known, state.handle)

    def _append(self, held: Held, spec: TableSpec, known: Known, handle: DeltaTable) -> None:
        table = held.lane.table(spec, handle)
        written = table.append(held.rows, transaction=known.newest, plan_hash=self._plan_hash)
        self._written(spec, known, handle, written)

    def jobs(self) -> Mapping[str, DataFrame]:
        """The job of step 3 for each published table, described but not run; ask after step 2."""
        return {s.table: job for s in self.flow.sinks if (job := self._job(s)) is not None}

    def _job(self, sink: Sink) -> DataFrame | None:
        streams = [(s.counted, [b for b in s.branches if b.sink is sink]) for s in self._streams]
        parts = [unpack(frame, branches) for frame, branches in streams if branches]
        if not parts:
            return None
        rows = reduce(DataFrame.unionByName, parts)
        return _as_published(rows, sink) if isinstance(sink, RowSink) else partial_aggregates(rows, sink)

    def _own_values(self) -> dict[str, pa.Scalar]:
        batch, clock = (f.name for f in OWN_FIELDS)
        return {batch: pa.scalar(self.plan.batch_id, pa.int64()), clock: pa.scalar(self.plan.clock, _TIMESTAMP)}

    def _hold(self, frame: DataFrame, *, at_most: int | None = None) -> Held:
        """Run the job and hold its rows in the lane that fits their number. `at_most` is what is known of it before."""
        bound = self.plan.records if at_most is None else at_most
        if self._lane(bound) is self._driver:
            return Held(self._driver, *self._driver.hold(frame))
        cached, count = self._spark.hold(frame)
        if self.writer is None and count <= self.driver_rows:
            return Held(self._driver, *self._driver.hold(cached))
        return Held(self._spark, cached, count)

    def _lane(self, rows: int) -> Lane[Any]:
        small = rows <= self.driver_rows if self.writer is None else self.writer == self._driver.name
        return self._driver if small else self._spark

    @cached_property
    def counts(self) -> Mapping[str, Counts]:
        """What the pass counted, by topic; topics without records have empty counts. Ask after step 3."""
        found = {s.source.topic: s.counter.result() for s in self._streams}
        empty = Counts(account=Account())
        return {i.topic: found.get(i.topic, empty) for i in self.flow.inputs}

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
        with boundary(f"panes:{sink.table}", self.plan.batch_id):
            parts = self._panes(sink, ranges) if ranges else []
        state = [part.stamped({"_touched": pa.scalar(False)}) for part in parts]
        if partials and ranges:
            state.append(partials.stamped({"_touched": pa.scalar(True)}))
        # Panes of windows that close may hold many more rows than this batch brought.
        bound = sum(part.count for part in state)
        if not bound:
            return None
        bounds = {name: pa.scalar(value, pa.int64()) for name, value in firing.bounds.items()}
        whole = self._frame([part.stamped(bounds) for part in state if part.count])
        windows = query(self.session, merged_windows(ROWS, sink), whole)
        return self._hold(windows, at_most=bound * sink.window.panes.overlap).stamped(self._own_values())

    def _frame(self, parts: Sequence[Held]) -> DataFrame:
        lanes = [(lane, [p.rows for p in parts if p.lane is lane]) for lane in (self._driver, self._spark)]
        return self._spark.frame([lane.frame(rows) for lane, rows in lanes if rows])

    def _panes(self, sink: WindowedSink, ranges: Sequence[PaneRange]) -> list[Held]:
        state = self._states.get(sink.table) or State.of(self.uris, sink, self._known.state(sink))
        count = state.at_most(ranges) if state else 0
        if state is None or not count:
            return []
        lane = self._lane(count)
        return [Held(lane, rows, count) for rows in state.read(lane, ranges, self.plan.position.slices)]

    def publish(self, staged: tuple[Staged, ...]) -> None:
        """Step 6: rejected and late rows, then every published table; each at most once for this batch."""
        self._put_aside()
        for item in staged:
            if item.count:
                with boundary(f"published:{item.sink.table}", self.plan.batch_id):
                    self._publish(item, self.uris.published_table(item.sink))

    def _publish(self, item: Staged, spec: TableSpec) -> None:
        known = self._known.table(item.sink)
        handle = ensure_table(spec, known=known)
        if isinstance(item.sink, RowSink):
            self._append(item.held, spec, known, handle)
            return
        starts = item.held.lane.distinct(item.rows, "window_start")
        within = Between(column="window_start", low=moment(min(starts)), high=moment(max(starts) + 1))
        keys = ("window_start", *item.sink.keys)
        table = item.held.lane.table(spec, handle)
        done = table.upsert(item.rows, keys=keys, within=within, transaction=known.newest, plan_hash=self._plan_hash)
        self._written(spec, known, handle, done)

    def _put_aside(self) -> None:
        rejected = any(c.account.rejected for c in self.counts.values())
        late = any(c.late_rows for c in self.counts.values())
        if not rejected and not late:
            return
        streams = [s for s in self._streams if self.counts[s.source.topic].strays]
        frames = {s: s.strays(self.counts[s.source.topic]) for s in streams}
        if rejected and late:
            frames = {s: self._spark.cache(frame) for s, frame in frames.items()}
        if rejected:
            parts = [query(self.session, rejected_rows(s.source), frames[s]) for s in streams]
            held = self._append_strays(self.uris.quarantine(), parts)
            self.reasons = held.lane.tally(held.rows, "reasons")
        if late:
            ended = self.plan.lateness_watermark == END
            watermark = None if ended else moment(self.plan.lateness_watermark)
            parts = [query(self.session, text, frames[s]) for s in streams if (text := late_rows(s.branches))]
            self._append_strays(self.uris.late(), parts, watermark=pa.scalar(watermark, _TIMESTAMP))

    def _append_strays(self, spec: TableSpec, parts: list[DataFrame], **values: pa.Scalar) -> Held:
        whole = reduce(DataFrame.unionByName, parts)
        with boundary("strays", self.plan.batch_id):
            held = self._hold(whole, at_most=sum(c.strays for c in self.counts.values()))
        batch_id, clock = self._own_values().values()
        held = held.stamped({"batch_id": batch_id, "recorded_at": clock, **values})
        with boundary(spec.name, self.plan.batch_id):
            known = self._known.own(spec)
            self._append(held, spec, known, ensure_table(spec, known=known))
        return held

    def _written(self, spec: TableSpec, known: Known, handle: DeltaTable, written: Written) -> None:
        self.versions[spec.name] = written.version
        self.marks[known.name] = known.mark_after(handle, written.version)

    def release(self) -> None:
        """Let go of what is cached on the executors."""
        self._spark.release()


def _as_published(rows: DataFrame, sink: RowSink) -> DataFrame:
    """The rows of the sink in the types of its contract."""
    return rows.selectExpr(*(renamed(cast_or_null(quoted(f.name), f.type), f.name) for f in sink.contract.fields))
