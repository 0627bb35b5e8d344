"""Which late or rejected records a repair would take, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.counts import many
from tidemill.core.plan.amendments import SideOutput

if TYPE_CHECKING:
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
    if note := about_firings(amendment, output, wanted):
        yield f"          {note}"
    for row in first.chosen.rows.to_pylist():
        yield f"          {_line(output, row)}"
    if first.total > _SHOWN:
        yield f"          and {first.total - _SHOWN:,} more"


def about_firings(amendment: AmendmentJob, output: SideOutput, wanted: Selection) -> str | None:
    """What a repair of these records does to tables of firings; None if it takes no record of one."""
    from tidemill.core.plan.amendments import Repair
    from tidemill.repair.replaying_keys import CountsNow, replay_of_keys

    ordered = [sink.table for sink in amendment.flow.sinks if isinstance(sink, FiringSink)]
    if output is SideOutput.LATE:
        named = [table for table in ordered if wanted.table in {None, table}]
        told = f"records of {', '.join(named)} count only in windows that still take records; the others stay late"
        return told if named else None
    chosen = amendment.side_tables.choose(output, wanted, columns=_columns(output))
    if not ordered or chosen is None or not chosen.rows.num_rows:
        return None
    asked = Repair(source=output, version=chosen.version, batches=chosen.batches, reason=amendment.reason)
    tables = ", ".join(ordered)
    try:
        replay = replay_of_keys(amendment, amendment.ledger.view(), asked, chosen.ranges)
    except CountsNow as why:
        return f"in {tables}, they count after all records that their keys have read so far, because {why}"
    assert replay is not None
    return (
        f"in {tables}, all records of their keys since batch {replay.since} are read again, and the firings of these "
        "keys since then are replaced"
    )


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
