"""Rows of windows that fired, with the timing column, if the pipeline publishes one."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.amendments import Fold, Repair, Rewind, Switch
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.plan.work import BackfillStep, Live, Reading, Work
from tidemill.core.sql.text import quoted, renamed
from tidemill.core.time.timing import Timing, timing_of_live, timing_sql
from tidemill.core.time.window_expressions import last_window_end
from tidemill.engine.storage.staged_rows import StagedRows


def timed(fired: StagedRows, sink: WindowedSink, plan: BatchPlan, after: Position) -> StagedRows:
    """The rows that a batch publishes when it moves the pipeline to `after`, with their timing, if it is published."""
    if sink.timing is None:
        return fired
    if (timing := _timing_of(plan.work)) is not None:
        return fired.stamped({sink.timing: pa.scalar(timing.value)})
    if sink.start is None:
        return fired.stamped({sink.timing: pa.scalar(Timing.EARLY.value)})
    edges = (plan.position.watermark_of(sink.table), after.watermark_of(sink.table))
    # Only the rows themselves tell where a session ends.
    known = sink.bounds[-1] if sink.merging else sink.start
    if not isinstance(fired.rows, pa.Table):
        time = f"unix_micros({quoted(known)})"
        end = time if sink.merging else last_window_end(sink.window.panes, time)
        rows = fired.rows.selectExpr("*", renamed(timing_sql(f"({end})", *edges), sink.timing))
        return StagedRows(fired.writer, rows, fired.count)
    # A batch publishes many rows of few windows: compute the timing once for each window.
    times = fired.rows[known].cast(pa.int64()).combine_chunks().dictionary_encode()
    ends = [time if sink.merging else sink.window.panes.end_of(time) for time in times.dictionary.to_pylist()]
    timings = pa.array([timing_of_live(end, *edges).value for end in ends], pa.string())
    column = pc.take(timings, times.indices)
    return StagedRows(fired.writer, fired.rows.append_column(sink.timing, column), fired.count)


def _timing_of(work: Work) -> Timing | None:
    """The timing of all rows of a batch; None for a live one, where it depends on the window."""
    match work:
        case Live():
            return None
        case BackfillStep():
            return Timing.BACKFILL
        case Repair() | Reading() | Rewind() | Switch() | Fold():
            return Timing.REPAIR
        case _:
            assert_never(work)
