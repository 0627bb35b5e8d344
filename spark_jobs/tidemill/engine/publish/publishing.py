"""Step 6 of a batch: what it writes where readers look, each table once, with the batch as its transaction.

live, repair      windows are upserted, rows appended
backfill          until it is complete, rows wait in tables that nobody reads; its last batch replaces windows and rows
rewind            every table goes back to a version
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from deltalake import DeltaTable

from tidemill.core.bind.flow import Flow, RowSink, Sink, WindowedSink
from tidemill.core.plan.jobs import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import TableMark
from tidemill.core.plan.slices import batch_ranges
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.times import moment
from tidemill.engine.aggregate.firing import Refiring
from tidemill.engine.publish.side_tables import Taken
from tidemill.engine.storage.corrections import corrections
from tidemill.engine.storage.expected_versions import Marks
from tidemill.engine.storage.staged_rows import Held, Lanes
from tidemill.engine.storage.state_table import check_horizon
from tidemill.engine.storage.table_layout import OWN_FIELDS, Uris
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.fence import find_commit
from tidemill.tables.handles import newest, open_table, rows_of
from tidemill.tables.keeping import KeptTable
from tidemill.tables.known import Known
from tidemill.tables.protocol import AlreadyThere, Between, Table, TableSpec, Transaction, Written, of_batches

_ROW = ("table_name", "topic", "partition", "offset")

Write = Callable[[Table[Any], Transaction], Written]


@dataclass(kw_only=True)
class Publisher:
    """Writes what one attempt publishes.

    `marks` is what the ledger knows of its tables. `versions` collects the version of every table that the attempt
    wrote, `written` how it left those that the ledger will know.
    """

    flow: Flow
    plan: BatchPlan
    uris: Uris
    lanes: Lanes
    marks: Marks
    versions: dict[str, int] = field(default_factory=dict)
    written: dict[str, TableMark] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._plan_hash = fingerprint(self.plan)

    def publish(self, sink: Sink, held: Held | None, job: Backfill | None) -> None:
        """The staged rows of a sink, None when there are none; `job` is the backfill with this batch."""
        match sink, job:
            case RowSink(), Backfill(complete=False):
                self._wait(self.uris.published_table(sink), held)
            case RowSink(), Backfill() as job:
                self._replace_batches(self.uris.published_table(sink), held, job)
            case WindowedSink(), Backfill(complete=True) as job:
                self._replace_windows(sink, held, job)
            case RowSink(), _ if held is not None and held.count:
                self._append(self.uris.published_table(sink), held)
            case WindowedSink(), _ if held is not None and held.count:
                self._upsert(sink, held)
            case _:
                pass

    def put_aside(self, spec: TableSpec, held: Held | None, job: Backfill | None) -> None:
        """Rejected or late rows, None when there are none; `job` is the backfill with this batch."""
        match job:
            case Backfill(complete=False):
                self._wait(spec, held)
            case Backfill() as job:
                self._replace_batches(spec, held, job)
            case _ if held is not None:
                self._append(spec, held)
            case _:
                pass

    def take_out(self, taken: Taken, refused: pa.Table | None, held: Held | None) -> None:
        """What a repair takes out of a table; rows of records `refused` again, or `held`, are put there as its own."""
        spec, within = taken.spec, taken.within
        back = None if refused is None else self.lanes.in_driver(taken.back(refused))
        full = [part for part in (back, held) if part is not None and part.count]
        rows = self.lanes.together(full) if full else self._no_rows(spec)
        if rows.lane is self.lanes.driver:

            def take(table: Table[Any], named: Transaction) -> Written:
                assert isinstance(table, DeltaRsTable)
                hash_ = self._plan_hash
                return table.replace(rows.rows, within=within, transaction=named, plan_hash=hash_, only=taken.rows)

            self._write(spec, rows, take)
            return
        # Spark replaces all rows of a batch, those that stay by themselves.
        left = taken.left()
        whole = self.lanes.together([rows, Held(self.lanes.driver, left, left.num_rows)]) if left.num_rows else rows
        self._write(spec, whole, lambda table, transaction: self._replace(table, whole, within, transaction))

    def _replace_batches(self, spec: TableSpec, held: Held | None, job: Backfill) -> None:
        """In the place of the rows of superseded batches, those that the job has kept waiting and these."""
        parts = [*self._waiting(spec, job), *([held] if held is not None else ())]
        if not parts and newest(spec) is None:
            return
        within = of_batches(job.supersedes)
        rows = self.lanes.together(parts) if parts else self._no_rows(spec)
        self._write(spec, rows, lambda table, transaction: self._replace(table, rows, within, transaction))

    def superseded_aside(self) -> pa.Table:
        """Which records the batches that a backfill supersedes had put aside, once for each table with windows."""
        late, rejected = self._superseded(self.uris.late(), _ROW), self._superseded(self.uris.quarantine(), _ROW[1:])
        tables = [sink.table for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        named = [rejected.add_column(0, _ROW[0], pa.array([t] * rejected.num_rows, pa.string())) for t in tables]
        return pa.concat_tables([late, *named])

    def _superseded(self, spec: TableSpec, columns: tuple[str, ...]) -> pa.Table:
        """What superseded batches have left there, also when an earlier attempt has replaced it."""
        job, handle, wrote = self.plan.backfill, newest(spec), self.marks.own(spec).newest
        fields = tuple(spec.field(column) for column in columns)
        if job is None or handle is None or not job.supersedes:
            return arrow_schema(fields).empty_table()
        there = handle.transaction_version(wrote.app_id) == wrote.version
        found = find_commit(handle, wrote) if there else None
        parts = tuple((bounds,) for bounds in of_batches(job.supersedes))
        version = None if found is None else found[0] - 1
        return DeltaRsTable(spec).read(any_of=parts, columns=columns, version=version)

    def go_back(self) -> None:
        """Every table as it was: published ones, quarantine and the late table."""
        rewind = self.plan.rewind
        if rewind is None:
            return
        for sink in self.flow.sinks:
            if isinstance(sink, WindowedSink):
                # Maintenance may have come between plan and now.
                check_horizon(self.uris, sink, rewind.position.batch_id)
        specs = [*(self.uris.published_table(s) for s in self.flow.sinks), self.uris.quarantine(), self.uris.late()]
        for spec in specs:
            if newest(spec) is None:
                continue
            version, known = rewind.versions.get(spec.name), self._known(spec)
            with boundary(_write_of(self.flow, spec), self.plan.batch_id):
                handle = ensure_table(spec, known=known)
                table = KeptTable(spec)
                done = table.go_back(version, transaction=known.newest, plan_hash=self._plan_hash)
                self.wrote(spec, known, handle, done)

    def leave(self) -> None:
        """What an earlier attempt has published stays, and the ledger learns of it."""
        for spec, known in self.marks.all(self.flow, self.uris):
            handle = newest(spec)
            if handle is not None and handle.transaction_version(known.newest.app_id) == known.newest.version:
                self.wrote(spec, known, handle, AlreadyThere(handle.version()))

    def switch(self) -> None:
        """Every published table becomes what its generation has built aside."""
        for sink in self.flow.sinks:
            spec = self.uris.published_table(sink)
            if newest(self._aside(sink)) is None and newest(spec) is None:
                continue
            rows = self.built(sink)
            with boundary(_write_of(self.flow, spec), self.plan.batch_id):
                table, known = rows.lane.bare_table(spec), self._known(spec)
                done = table.overwrite(rows.rows, transaction=known.newest, plan_hash=self._plan_hash)
                self.wrote(spec, known, open_table(spec), done)

    def _aside(self, sink: Sink) -> TableSpec:
        """Where a generation publishes while it is built."""
        spec = self.uris.published_table(sink)
        return replace(spec, uri=self.uris.table(self.uris.pipeline, "published", sink.table))

    def built(self, sink: Sink) -> Held:
        """All rows of a sink that the generation has built."""
        spec = self._aside(sink)
        if newest(spec) is None:
            return self._no_rows(spec)
        lane = self.lanes.of(rows_of(spec))
        rows = lane.table(spec).read()
        return Held(lane, rows, lane.count(rows))

    def _append(self, spec: TableSpec, held: Held) -> None:
        self._write(spec, held, lambda table, t: table.append(held.rows, transaction=t, plan_hash=self._plan_hash))

    def _upsert(self, sink: WindowedSink, held: Held) -> None:
        starts = held.lane.distinct(held.rows, "window_start")
        within = Between(column="window_start", low=moment(min(starts)), high=moment(max(starts) + 1))
        if self.plan.repair is not None:
            self._keep_values(sink, held, within)
        self._write(
            self.uris.published_table(sink),
            held,
            lambda table, t: table.upsert(
                held.rows, keys=sink.row_key, within=within, transaction=t, plan_hash=self._plan_hash
            ),
        )

    def _keep_values(self, sink: WindowedSink, held: Held, within: Between) -> None:
        """Before published values change, what they were and what they will be."""
        spec, published = self.uris.corrections(), self.uris.published_table(sink)
        before = DeltaRsTable(published).read(where=(within,)) if newest(published) else pa.table({})
        rows = corrections(sink, before, held.lane.arrow(held.rows), batch_id=self.plan.batch_id, at=self.plan.clock)
        changed = Held(self.lanes.driver, rows, rows.num_rows)
        named = Transaction(f"{self.flow.key}/{spec.name}/{sink.table}", self.plan.batch_id)
        with boundary("corrections", self.plan.batch_id):
            table = changed.lane.table(spec)
            self.versions[spec.name] = table.append(changed.rows, transaction=named, plan_hash=self._plan_hash).version

    def _replace_windows(self, sink: WindowedSink, held: Held | None, job: Backfill) -> None:
        spec = self.uris.published_table(sink)
        refiring = Refiring.of(sink, job, self.plan.position)
        within = tuple(
            Between(column="window_start", low=moment(low), high=moment(high))
            for low, high in refiring.window_starts(sink)
        )
        if within and (held is not None or newest(spec) is not None):
            rows = held or self._no_rows(spec)
            self._write(spec, rows, lambda table, transaction: self._replace(table, rows, within, transaction))

    def _replace(self, table: Table[Any], held: Held, within: tuple[Between, ...], transaction: Transaction) -> Written:
        return table.replace(held.rows, within=within, transaction=transaction, plan_hash=self._plan_hash)

    def _wait(self, spec: TableSpec, held: Held | None) -> None:
        if held is None or not held.count:
            return
        place = self.uris.waiting(spec)
        named = Transaction(f"{self.flow.key}/{place.name}", self.plan.batch_id)
        with boundary(place.name, self.plan.batch_id):
            held.lane.table(place).append(held.rows, transaction=named, plan_hash=self._plan_hash)

    def _waiting(self, spec: TableSpec, job: Backfill) -> Sequence[Held]:
        place = self.uris.waiting(spec)
        if newest(place) is None:
            return ()
        lane = self.lanes.of(rows_of(place))
        # Others may have waited there: of a job that was given up, or taken back by a rewind.
        earlier = batch_ranges(b for b in job.slices if b != self.plan.batch_id)
        parts = [lane.table(place).read(where=(bounds,)) for bounds in of_batches(earlier)]
        return tuple(Held(lane, rows, lane.count(rows)) for rows in parts)

    def _no_rows(self, spec: TableSpec) -> Held:
        return Held(self.lanes.driver, pa.table({c: [] for c in spec.columns[:1]}), 0)

    def _write(self, spec: TableSpec, held: Held, write: Write) -> None:
        with boundary(_write_of(self.flow, spec), self.plan.batch_id):
            known = self._known(spec)
            handle = ensure_table(spec, known=known)
            self.wrote(spec, known, handle, write(held.lane.table(spec, handle), known.newest))

    def _known(self, spec: TableSpec) -> Known:
        """What the ledger knows of a published table, of quarantine or the late table."""
        sinks = [sink for sink in self.flow.sinks if sink.table == spec.name]
        return self.marks.table(sinks[0]) if sinks else self.marks.own(spec)

    def append_slice(self, spec: TableSpec, known: Known, held: Held) -> DeltaTable:
        """A handle on the table, to which these rows were appended as the slice of the attempt.

        Readers tell slices apart, but not what is twice in one. So the slice is the transaction: when the ledger lost
        its last commit, the same slice is planned again and must not be written twice.
        """
        handle = ensure_table(spec, known=known)
        table = held.lane.table(spec, handle)
        self.wrote(spec, known, handle, table.append(held.rows, transaction=known.newest, plan_hash=self._plan_hash))
        return handle

    def wrote(self, spec: TableSpec, known: Known, handle: DeltaTable, written: Written) -> None:
        """Remember what was written to a table that was opened as `handle`."""
        self.versions[spec.name] = written.version
        self.written[known.name] = known.mark_after(handle, written.version)


def own_values(plan: BatchPlan) -> Mapping[str, pa.Scalar]:
    """The columns of published rows that are Tidemill's own."""
    batch, clock = (f.name for f in OWN_FIELDS)
    return {batch: pa.scalar(plan.batch_id, pa.int64()), clock: pa.scalar(plan.clock, pa.timestamp("us", "UTC"))}


def _write_of(flow: Flow, spec: TableSpec) -> str:
    """The boundary around a write to this table."""
    published = any(sink.table == spec.name for sink in flow.sinks)
    return f"published:{spec.name}" if published else spec.name
