"""Checks whether published tables hold what one computation over the whole log gives."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import Sink, WindowedSink, updates_rows
from tidemill.core.change.compatibility import check_compatibility, incompatible
from tidemill.core.change.redefinition import redefined, undecided
from tidemill.core.history.coverage import Cover, batches_of, united
from tidemill.core.history.past import Past
from tidemill.core.plan.position import Since
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_reading
from tidemill.core.repair.selection import OfWindows
from tidemill.core.time.panes import Window
from tidemill.core.time.times import micros, moment
from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.engine.aggregate.epochs import History
from tidemill.engine.aggregate.input_stream import PLACE, entering
from tidemill.engine.aggregate.window_sql import merged_windows
from tidemill.engine.attempt import Attempt
from tidemill.engine.publish.comparison import Differences, different_rows, different_windows
from tidemill.engine.publish.session_results import SessionFiring
from tidemill.engine.spark.query import ROWS, query
from tidemill.engine.spark.session import Spark
from tidemill.engine.steps import Read
from tidemill.engine.storage.state_table import State
from tidemill.engine.storage.table_layout import PANE_FIELDS
from tidemill.inspect.earlier import Earlier, parted
from tidemill.log.reading import check_whole
from tidemill.repair.job import AmendmentJob
from tidemill.run.histories import turns_of
from tidemill.run.sessions import project_spark
from tidemill.tables.deltars import DeltaRsTable
from tidemill.tables.handles import newest, rows_of
from tidemill.tables.interface import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of comparing one table.

    `earlier` are batches whose numbers had another meaning, changed by a decision in the ledger; their results were not
    compared. For windows, these are all windows that start in the half-open ranges `left_out`, and, if batches had left
    the table out, all that start at or before `since.event_time`. Windows that start in `parted` were not compared
    either: they may lack a record that later windows have.
    """

    table: str
    differences: Differences
    earlier: tuple[BatchRange, ...] = ()
    since: Since | None = None
    left_out: tuple[Window, ...] = ()
    parted: tuple[Window, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every compared row is right."""
        return self.differences.count == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What to compare: windows in this range of event times, of which `seed` chooses the share `sample` (0 to 1)."""

    windows: OfWindows | None = None
    sample: float = 1.0
    seed: int = 0


def verify(amendment: AmendmentJob, scope: Scope) -> Iterator[Verified]:
    """Compare each published table with a computation over everything that was read, by the present declaration.

    Late and quarantined records are expected to be where they are. Windows that fire on close are not compared before
    the watermark has passed them. Nor are results from before a change of meaning, and windows that may lack a record
    which arrived after they had closed but counts in later windows. Nothing is written.

    Raises:
        Incompatible: raised after all other tables: the present declaration gives a table another meaning, and nobody
            has decided that, or other windows, keys or aggregates.
        OffsetsLost: the log no longer holds what was read.
        EngineError: Spark or a table failed.
    """
    view = amendment.ledger.view()
    changed = {*undecided(amendment.flow, view.position), *incompatible(amendment.flow, view)}
    past = amendment.ledger.past()
    covers = past.covers(view.position.slices)
    spark = Spark.of(amendment.session()) if amendment.session else project_spark(amendment.project)
    for sink in (sink for sink in amendment.flow.sinks if sink.table not in changed):
        wanted = _windows(amendment, sink, scope) if isinstance(sink, WindowedSink) else None
        if wanted is not None and not wanted:
            yield Verified(table=sink.table, differences=Differences())
            continue
        earlier = Earlier.of(sink, view.position, covers)
        since = (view.position.since or {}).get(sink.table)
        if earlier.batches and _mixes(amendment, sink, view, past):
            yield Verified(table=sink.table, differences=Differences(), earlier=batches_of(covers), since=since)
            continue
        lacking = parted(sink, past.batches()) if isinstance(sink, WindowedSink) else ()
        checking = _Checking(amendment, view, spark, sink, wanted, earlier, lacking)
        now = earlier.others(covers)
        yield checking.compare(_of_windows(sink, now, wanted) if isinstance(sink, WindowedSink) else now)
    check_compatibility(amendment.flow, view)
    redefined(amendment.flow, view.position)


def _mixes(amendment: AmendmentJob, sink: Sink, view: View, past: Past) -> bool:
    """Whether any row may have records of both meanings: totals, and firings, whose windows went on where they were."""
    if not isinstance(sink, FiringSink):
        return isinstance(sink, WindowedSink) and sink.start is None
    first, state = view.position.first_of_meaning(sink.table), amendment.uris.state(sink, PANE_FIELDS).name
    # What a backfill of a part left of firings goes on from earlier slices, and these are still visible.
    slices = view.position.slices
    shown = (b for b in past.batches() if state in b.tables and slices.attempt_of(b.batch_id) == b.attempt)
    return any(batches.from_batch < first for b in shown for batches in b.batches)


def _windows(amendment: AmendmentJob, sink: WindowedSink, scope: Scope) -> Sequence[Window] | None:
    """The windows to compare, out of those that are published or have state; None means all."""
    if sink.start is None or (scope.windows is None and scope.sample >= 1):
        return None
    bounds, panes = scope.windows, sink.window.panes
    low, high = (micros(bounds.since), micros(bounds.until)) if bounds else (None, None)
    state = State.of(amendment.uris, sink)
    known = _moments(amendment.uris.published_table(sink), sink.start)
    if state is not None:
        known |= {w.start for pane in _moments(state.spec, "pane_start") for w in panes.windows_of(pane)}
    found = sorted(s for s in known if (low is None or s >= low) and (high is None or s < high))
    size = math.ceil(len(found) * scope.sample)
    chosen = found if scope.sample >= 1 else random.Random(scope.seed).sample(found, size)
    return [Window(start, panes.end_of(start)) for start in sorted(chosen)]


def _moments(spec: TableSpec, column: str) -> set[int]:
    """The different values of a timestamp column, in microseconds; empty if the table does not exist."""
    if newest(spec) is None:
        return set()
    values = DeltaRsTable(spec).read(where=(), columns=(column,))[column]
    return {micros(value) for value in pc.unique(values).to_pylist()}


def _of_windows(sink: WindowedSink, covers: Sequence[Cover], wanted: Sequence[Window] | None) -> Sequence[Cover]:
    if wanted is None or sink.merging:
        return covers
    return [c for c in covers if any(c.lies_in(sink.table, w.start, w.end) for w in wanted)]


@dataclass(frozen=True)
class _Checking:
    """Computes one table again and compares it."""

    amendment: AmendmentJob
    view: View
    spark: Spark
    sink: Sink
    windows: Sequence[Window] | None
    earlier: Earlier
    parted: Sequence[Window]

    def compare(self, covers: Sequence[Cover]) -> Verified:
        """Read what these batches read, compute the table and compare it."""
        attempt = self._attempt(covers)
        read = attempt.read().kept(attempt.flow, attempt.writers.spark)
        try:
            job = self._job(attempt, read)
            spec = attempt.uris.published_table(self.sink)
            there = newest(spec) is not None
            writer = attempt.writers.of(rows_of(spec))
            found = writer.frame([writer.table(spec).read()]) if there else None
            return Verified(
                table=self.sink.table,
                differences=self._differences(attempt, job, found),
                earlier=self.earlier.batches,
                since=(self.view.position.since or {}).get(self.sink.table),
                left_out=self.earlier.windows,
                parted=tuple(self.parted),
            )
        finally:
            attempt.release()

    def _job(self, attempt: Attempt, read: Read) -> DataFrame | None:
        """The rows that should be there, or the state of windows from which they come; None when there is none."""
        sink = attempt.flow.sinks[0]
        if not isinstance(sink, FiringSink):
            return attempt.job(read, sink, without=self._aside())
        rows = entering(read.streams, sink, self._aside())
        history = History.of(turns_of(self.amendment.ledger), sink.table)
        found = None if rows is None else attempt.firings.again(sink, rows, history)
        return None if found is None else attempt.writers.frame([found])

    def _differences(self, attempt: Attempt, job: DataFrame | None, found: DataFrame | None) -> Differences:
        if not isinstance(self.sink, WindowedSink):
            now = found if found is None else self.earlier.without_rows(found)
            if updates_rows(self.sink):
                return different_windows(self.spark.session, self.sink, job, now)
            return different_rows(self.spark.session, self.sink, job, now)
        fires = partial(self._sessions, attempt) if self.sink.merging else self._closed
        expected = None if job is None else query(self.spark.session, merged_windows(ROWS, self.sink), fires(job))
        inside = partial(self._inside, self.sink)
        return different_windows(self.spark.session, self.sink, inside(expected), inside(found))

    def _attempt(self, covers: Sequence[Cover]) -> Attempt:
        flow = replace(self.amendment.flow, sinks=(self.sink,))
        ranges = united(c.ranges for c in covers)
        plan = plan_reading(flow, self.view, ranges, clock=datetime.now(UTC))
        log = self.amendment.project.log()
        settings = self.amendment.project.settings
        scans = {name: log.scan(plan.topic_id(name), ranges) for name, ranges in plan.reads.items()}
        for scan in scans.values():
            check_whole(scan)
        return Attempt(
            flow=flow,
            plan=plan,
            number=1,
            scans=scans,
            spark=self.spark,
            uris=self.amendment.uris,
            driver_rows=settings.driver_rows,
            writer=settings.writer,
        )

    def _aside(self) -> DataFrame | None:
        """The records that the table lacks on purpose: those in quarantine or in the late table."""
        rows = self.amendment.side_tables.lacking(self.sink.table)
        return self.spark.session.createDataFrame(rows.rename_columns(list(PLACE))) if rows.num_rows else None

    def _closed(self, panes: DataFrame) -> DataFrame:
        """Add the columns that `merged_windows` needs, so that every window fires that the watermark allows to fire."""
        watermark = self.view.position.watermark_of(self.sink.table)
        until = self.sink.trigger.touched_until(watermark) if isinstance(self.sink, WindowedSink) else END
        bounds = {"_before": END, "_after": END, "_refused_until": BEGINNING, "_again_until": until}
        return panes.selectExpr("*", *(_constant(v, n) for n, v in bounds.items()), "true AS _touched")

    def _sessions(self, attempt: Attempt, state: DataFrame) -> DataFrame:
        """State joined into all sessions that the watermark allows to fire."""
        assert isinstance(self.sink, WindowedSink)
        until = self.sink.trigger.touched_until(self.view.position.watermark_of(self.sink.table))
        firing = SessionFiring.everything(self.sink, until=until)
        joined = attempt.writers.spark.chained([state.selectExpr("*", "true AS _touched")], firing.chain)
        return joined.fires[0]

    def _inside(self, sink: WindowedSink, rows: DataFrame | None) -> DataFrame | None:
        if rows is None or sink.start is None:
            return rows
        rows = self.earlier.without_windows(rows, sink.start, self.parted)
        if self.windows is None:
            return rows
        starts = pa.array([moment(w.start) for w in self.windows], pa.timestamp("us", "UTC"))
        wanted = self.spark.session.createDataFrame(pa.table({sink.start: starts}))
        return rows.join(wanted, sink.start, "left_semi")


def _constant(value: int, name: str) -> str:
    # The smallest 64-bit number cannot be written as a literal.
    return f"CAST('{value}' AS BIGINT) AS {name}"
