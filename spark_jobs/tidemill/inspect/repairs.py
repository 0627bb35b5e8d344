"""Which late or rejected records a repair would take, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.counts import many
from tidemill.core.plan.amendments import SideOutput

if TYPE_CHECKING:
    from tidemill.core.bind.flow import Flow
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.repair.job import AmendmentJob

_SHOWN = 20
"""The most records that are named."""

_PLACE = ("batch_id", "topic", "partition", "offset")


def repair_lines(amendment: AmendmentJob, output: SideOutput, wanted: Selection) -> Iterator[str]:
    """The records that a repair would take, oldest first, and how many batches it needs.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
        TidemillError: the repair would be refused, for this reason.
    """
    from tidemill.repair.named import check_selected
    from tidemill.repair.repair import batches_needed, check_repair

    first = amendment.side_tables.first(output, wanted, _SHOWN)
    if first is None or not first.total:
        check_selected(amendment, output, wanted)
        yield "no such record is there"
        return
    check_repair(amendment, output, wanted)
    chosen = amendment.side_tables.choose(output, wanted, columns=_columns(output))
    batches = 0 if chosen is None else batches_needed(amendment, output, chosen)
    yield f"takes     {many(first.total, 'record')}, in {many(batches, 'batch')}, live ones in between"
    if note := about_firings(amendment.flow, output, wanted):
        yield f"          {note}"
    for row in first.chosen.rows.to_pylist():
        yield f"          {_line(output, row)}"
    if first.total > _SHOWN:
        yield f"          and {first.total - _SHOWN:,} more"


def about_firings(flow: Flow, output: SideOutput, wanted: Selection) -> str | None:
    """What becomes of late records of tables of firings, if the repair may take some; None if it takes none."""
    ordered = (sink.table for sink in flow.sinks if isinstance(sink, FiringSink))
    named = [table for table in ordered if wanted.table in (None, table)]
    if output is not SideOutput.LATE or not named:
        return None
    return f"records of {', '.join(named)} count only in windows that still take records; the others stay late"


def _columns(output: SideOutput) -> tuple[str, ...]:
    return (*_PLACE, "table_name") if output is SideOutput.LATE else _PLACE


def _line(output: SideOutput, row: Mapping[str, Any]) -> str:
    """Where a record is, which batch put it aside, and why."""
    place = f"{row['topic']}-{row['partition']} offset {row['offset']}, put aside by batch {row['batch_id']}"
    if output is SideOutput.QUARANTINE:
        return f"{place}: {'; '.join(row['reasons'])}"
    # Buffers and the window of all times have no bounds.
    window = "" if row["window_start"] is None else f", window of {row['window_start']:%Y-%m-%d %H:%M:%S}"
    return f"{place}: late for {row['table_name']}{window}"
