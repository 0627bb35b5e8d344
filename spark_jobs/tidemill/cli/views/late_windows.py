"""Prints `tidemill late windows`: how many late records came for which window, in which batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemill.cli.output import console, grid
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.time.times import show_moment

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

    from tidemill.core.repair.side_outputs import Selection
    from tidemill.repair.job import AmendmentJob

_TIMES = ("window_start", "window_end", "watermark")


def show_windows(amendment: AmendmentJob, wanted: Selection, *, limit: int, as_json: bool) -> None:
    """Print how many late records came for each window, at most `limit` windows, by table and time.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
    """
    from tidemill.inspect.late_windows import late_windows
    from tidemill.repair.named import check_selected

    windows = late_windows(amendment, wanted)
    if not windows.num_rows:
        check_selected(amendment, SideOutput.LATE, wanted)
    shown = windows.slice(0, limit)
    if not as_json:
        _show(shown.to_pylist())
        console().print(_total(windows, shown))
        return
    for row in shown.to_pylist():
        print_json({**row, **{name: row[name] and row[name].isoformat() for name in _TIMES}})


def _show(rows: list[dict[str, Any]]) -> None:
    places = ("first batch", "last batch")
    times = ("window start", "window end", "watermark up to")
    partly = ["partly late"] if any(row["partly_late"] for row in rows) else []
    table = grid(*places, "table", *times, "records", *partly, numbers=(*places, "records", *partly))
    for row in rows:
        batches = str(row["first_batch"]), str(row["last_batch"])
        moments = ("-" if row[name] is None else show_moment(row[name]) for name in _TIMES)
        counts = (f"{row[name] or 0:,}" for name in ("records", *(["partly_late"] if partly else ())))
        table.add_row(*batches, row["table_name"], *moments, *counts)
    console().print(table)


def _total(windows: pa.Table, shown: pa.Table) -> str:
    """How many records and windows there are, how many of them are not shown, and what several tables mean for this."""
    left = windows.slice(shown.num_rows)
    not_shown = f"; not shown: {many(left.num_rows, 'line')} with {_counted(left)}" if left.num_rows else ""
    several = "; a record counts for each table that refused it" if len(windows["table_name"].unique()) > 1 else ""
    partly = sum(count or 0 for count in windows["partly_late"].to_pylist())
    missed = f"; {many(partly, 'time')} a window missed a record that later ones took" if partly else ""
    if windows["partly_late"].null_count:
        missed = "; records that only some windows missed are not counted with these options"
    return f"{_counted(windows)}{missed}{not_shown}{several}"


def _counted(windows: pa.Table) -> str:
    late = [(row["records"], row["window_start"] is None) for row in windows.to_pylist() if row["records"]]
    bounded, others = ([count for count, open_ in late if open_ is without] for without in (False, True))
    text = f"{many(sum(bounded), 'record')} in {many(len(bounded), 'window')}"
    return f"{text}, and {many(sum(others), 'record')} of tables without windows of time" if others else text
