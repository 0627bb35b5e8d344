"""Step 6 of a batch: writes to the tables that readers see, once for each, with the batch as its transaction.

live, repair      windows are upserted, and so are firings that update rows; other rows are appended
repair            of keys that it folds again, the rows of firings are replaced
backfill          rows wait in tables that nobody reads; its last batch replaces windows and rows
rewind            every table goes back to an earlier version
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink, updates_rows
from tidemill.core.plan.amendments import Repair, Rewind
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import batch_ranges
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.time.times import moment
from tidemill.engine.aggregate.firing import Refiring
from tidemill.engine.publish.row_replacer import RowReplacer, version_before
from tidemill.engine.publish.session_results import remembered
from tidemill.engine.publish.side_tables import Taken
from tidemill.engine.publish.sink_rows import SinkRows
from tidemill.engine.publish.table_writer import write_of
from tidemill.engine.storage.corrections import corrections
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.engine.storage.state_table import check_horizon
from tidemill.engine.storage.table_layout import EVERY_ROW, OWN_FIELDS
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest, open_table, rows_of
from tidemill.tables.interface import Between, Table, TableSpec, Transaction, Written, of_batches
from tidemill.tables.keeping import KeptTable

_ROW = ("table_name", "topic", "partition", "offset")


@dataclass(kw_only=True)
class Publisher(RowReplacer):
    """Writes what one attempt publishes."""

    def publish(self, sink: Sink, item: SinkRows | None, job: Backfill | None) -> None:
        """Publish the staged rows of a sink; None when there are none. `job` is the backfill after this batch."""
        staged, gone = (None, None) if item is None else (item.staged, item.gone)
        match sink, job:
            case FiringSink(), None if item is not None and item.keys is not None:
                self.replace_keys(sink, item.staged, item.keys)
            case RowSink() | FiringSink(), Backfill(complete=False):
                self._wait(self.uris.published_table(sink), staged)
            case RowSink() | FiringSink(), Backfill() as job:
                self._replace_batches(self.uris.published_table(sink), staged, job, whole=updates_rows(sink))
            case FiringSink(replaces=True), None if staged is not None and (staged.count or gone is not None):
                self._upsert(sink, staged, gone)
            case WindowedSink(), Backfill(complete=True) as job:
                self._replace_windows(sink, staged, job)
            case RowSink() | FiringSink(), _ if staged is not None and staged.count:
                self._append(self.uris.published_table(sink), staged)
            case WindowedSink(), _ if staged is not None and (staged.count or gone is not None):
                self._upsert(sink, staged, gone)
            case _:
                pass

    def write_side_output(self, spec: TableSpec, staged: StagedRows | None, job: Backfill | None) -> None:
        """Write rejected or late rows; None when there are none. `job` is the backfill after this batch."""
        match job:
            case Backfill(complete=False):
                self._wait(spec, staged)
            case Backfill() as job:
                self._replace_batches(spec, staged, job)
            case _ if staged is not None:
                self._append(spec, staged)
            case _:
                pass

    def take_out(self, taken: Taken, refused: pa.Table | None, staged: StagedRows | None) -> None:
        """Take records out of a side table for a repair.

        Records that were `refused` again, or `staged` rows, are put back as rows of this batch.
        """
        spec = taken.spec
        back = None if refused is None else self.writers.in_driver(taken.back(refused))
        full = [part for part in (back, staged) if part is not None and part.count]
        rows = self.writers.together(full) if full else self._no_rows(spec)
        self.replace_picked(spec, rows, taken.within, taken.rows, lambda: self.writers.in_driver(taken.left()))

    def _replace_batches(
        self, spec: TableSpec, staged: StagedRows | None, job: Backfill, *, whole: bool = False
    ) -> None:
        """Replace the rows of superseded batches by the rows that the job has kept waiting, and by `staged`.

        With `whole`, replace all rows that are there: those of firings that update one another.
        """
        parts = [*self._waiting(spec, job), *([staged] if staged is not None else ())]
        if not parts and newest(spec) is None:
            return
        within = (EVERY_ROW,) if whole else of_batches(job.supersedes)
        rows = self.writers.together(parts) if parts else self._no_rows(spec)
        self._write(spec, rows, lambda table, transaction: self._replace(table, rows, within, transaction))

    def superseded_aside(self) -> pa.Table:
        """The records that superseded batches had put aside, once for each table with windows."""
        late, rejected = self._superseded(self.uris.late(), _ROW), self._superseded(self.uris.quarantine(), _ROW[1:])
        tables = [sink.table for sink in self.flow.sinks if isinstance(sink, WindowedSink)]
        named = [rejected.add_column(0, _ROW[0], pa.array([t] * rejected.num_rows, pa.string())) for t in tables]
        return pa.concat_tables([late, *named])

    def _superseded(self, spec: TableSpec, columns: tuple[str, ...]) -> pa.Table:
        """The rows that superseded batches left in a table, even if an earlier attempt has already replaced them."""
        job, handle, wrote = self.plan.job, newest(spec), self.expected.own(spec).newest
        fields = tuple(spec.field(column) for column in columns)
        if job is None or handle is None or not job.supersedes:
            return arrow_schema(fields).empty_table()
        parts = tuple((bounds,) for bounds in of_batches(job.supersedes))
        version = version_before(handle, wrote)
        return DeltaRsTable(spec).read(any_of=parts, columns=columns, version=version)

    def go_back(self, rewind: Rewind) -> None:
        """Take published tables, quarantine and late table back to the versions that `rewind` names."""
        for sink in self.flow.sinks:
            if isinstance(sink, StatefulSink):
                # Maintenance may have removed state since the batch was planned.
                check_horizon(self.uris, sink, rewind.position.batch_id)
        specs = [*(self.uris.published_table(s) for s in self.flow.sinks), self.uris.quarantine(), self.uris.late()]
        for spec in specs:
            if newest(spec) is None:
                continue
            version, expected = rewind.versions.get(spec.name), self._expected(spec)
            with boundary(write_of(self.flow, spec), self.plan.batch_id):
                handle = ensure_table(spec, expected=expected)
                table = KeptTable(spec)
                done = table.go_back(version, transaction=expected.newest, plan_hash=self._plan_hash)
                self.wrote(spec, expected, handle, done)

    def switch(self) -> None:
        """Overwrite every published table with the rows that this generation has built aside."""
        for sink in self.flow.sinks:
            spec = self.uris.published_table(sink)
            if newest(self._aside(sink)) is None and newest(spec) is None:
                continue
            rows = self.built(sink)
            with boundary(write_of(self.flow, spec), self.plan.batch_id):
                table, expected = rows.writer.bare_table(spec), self._expected(spec)
                done = table.overwrite(rows.rows, transaction=expected.newest, plan_hash=self._plan_hash)
                self.wrote(spec, expected, open_table(spec), done)

    def _aside(self, sink: Sink) -> TableSpec:
        """The table that a generation publishes to while it is built."""
        spec = self.uris.published_table(sink)
        return replace(spec, uri=self.uris.table(self.uris.pipeline, "published", sink.table))

    def built(self, sink: Sink) -> StagedRows:
        """All rows that the generation has built for a sink."""
        spec = self._aside(sink)
        if newest(spec) is None:
            return self._no_rows(spec)
        writer = self.writers.of(rows_of(spec))
        rows = writer.table(spec).read()
        return StagedRows(writer, rows, writer.count(rows))

    def _append(self, spec: TableSpec, staged: StagedRows) -> None:
        self._write(spec, staged, lambda table, t: table.append(staged.rows, transaction=t, plan_hash=self._plan_hash))

    def _upsert(self, sink: StatefulSink, staged: StagedRows, gone: StagedRows | None) -> None:
        removed = None if gone is None else self.writers.for_writer(gone, staged.writer)
        within = _around(sink, staged, removed)
        if isinstance(self.plan.work, Repair):
            self._keep_values(sink, staged, removed, within)

        def write(table: Table[Any], transaction: Transaction) -> Written:
            if not sink.row_key:
                # There is one row for all records.
                return self._replace(table, staged, (within,), transaction)
            return table.upsert(
                staged.rows,
                keys=sink.row_key,
                within=within,
                transaction=transaction,
                plan_hash=self._plan_hash,
                gone=None if removed is None else removed.rows,
            )

        self._write(self.uris.published_table(sink), staged, write)

    def _keep_values(self, sink: StatefulSink, staged: StagedRows, removed: StagedRows | None, within: Between) -> None:
        """Keep the old and the new values of windows that a repair is about to change."""
        published = self.uris.published_table(sink)
        before = DeltaRsTable(published).read(where=(within,)) if newest(published) else pa.table({})
        after = staged.writer.arrow(staged.rows)
        gone = None if removed is None else removed.writer.arrow(removed.rows)
        self.keep(sink, corrections(sink, before, after, batch_id=self.plan.batch_id, at=self.plan.clock, gone=gone))

    def _replace_windows(self, sink: WindowedSink, staged: StagedRows | None, job: Backfill) -> None:
        spec = self.uris.published_table(sink)
        refiring = Refiring.of(sink, job, self.plan.position)
        within = _replaced(sink, self.plan, refiring)
        if within and (staged is not None or newest(spec) is not None):
            rows = staged or self._no_rows(spec)
            self._write(spec, rows, lambda table, transaction: self._replace(table, rows, within, transaction))

    def _wait(self, spec: TableSpec, staged: StagedRows | None) -> None:
        if staged is None or not staged.count:
            return
        place = self.uris.waiting(spec)
        named = Transaction(f"{self.flow.key}/{place.name}", self.plan.batch_id)
        with boundary(place.name, self.plan.batch_id):
            staged.writer.table(place).append(staged.rows, transaction=named, plan_hash=self._plan_hash)

    def _waiting(self, spec: TableSpec, job: Backfill) -> Sequence[StagedRows]:
        place = self.uris.waiting(spec)
        if newest(place) is None:
            return ()
        writer = self.writers.of(rows_of(place))
        # The table may also hold rows of a job that was given up, or taken back by a rewind.
        earlier = batch_ranges(b for b in job.slices if b != self.plan.batch_id)
        parts = [writer.table(place).read(where=(bounds,)) for bounds in of_batches(earlier)]
        return tuple(StagedRows(writer, rows, writer.count(rows)) for rows in parts)


def _around(sink: StatefulSink, *staged: StagedRows | None) -> Between:
    """Where stored rows lie that have the windows of these rows; all rows, if windows have no start."""
    if sink.start is None:
        return EVERY_ROW
    starts = [start for each in staged if each is not None for start in each.writer.distinct(each.rows, sink.start)]
    return Between(column=sink.start, low=moment(min(starts)), high=moment(max(starts) + 1))


def _replaced(sink: WindowedSink, plan: BatchPlan, refiring: Refiring) -> tuple[Between, ...]:
    """Where the stored rows of these windows lie; nowhere if no window fires."""
    if sink.start is None:
        return (EVERY_ROW,) if refiring.ranges else ()
    if sink.merging:
        return (remembered(sink, plan.position),)
    return tuple(
        Between(column=sink.start, low=moment(low), high=moment(high)) for low, high in refiring.window_starts(sink)
    )


def own_values(plan: BatchPlan) -> Mapping[str, pa.Scalar]:
    """The columns that Tidemill adds to published rows."""
    batch, clock = (f.name for f in OWN_FIELDS)
    return {batch: pa.scalar(plan.batch_id, pa.int64()), clock: pa.scalar(plan.clock, pa.timestamp("us", "UTC"))}
