"""Prints `tidemill late` and `tidemill quarantine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemill.cli.output import console, grid, printable
from tidemill.cli.views.log import print_json
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.time.times import show_moment

if TYPE_CHECKING:
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.log.side_tables import Chosen
    from tidemill.repair.job import AmendmentJob

_WIDTH = 60


def show_repair(amendment: AmendmentJob, output: SideOutput, wanted: Selection, *, as_json: bool) -> None:
    """Print the records that a repair would take, and how many batches it would need."""
    from tidemill.repair.repair import batches_needed

    chosen = show_records(amendment, output, wanted, limit=None if as_json else 50, as_json=as_json)
    if as_json:
        return
    batches = 0 if chosen is None else batches_needed(amendment, output, chosen)
    console().print(f"that takes {batches:,} batch{'' if batches == 1 else 'es'}")
    console().print("nothing was done: this is a dry run")


def show_records(
    amendment: AmendmentJob, output: SideOutput, wanted: Selection, *, limit: int | None, as_json: bool
) -> Chosen | None:
    """Print the chosen records, oldest first, and return them."""
    chosen = amendment.side_tables.choose(output, wanted)
    rows, total = _rows(chosen, limit)
    _show_rows(output, rows, total, as_json=as_json)
    return chosen


def _show_rows(output: SideOutput, rows: list[dict[str, Any]], total: int, *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print_json({name: _json(value) for name, value in row.items()})
        return

    out = console()
    why = "reasons" if output is SideOutput.QUARANTINE else "window"
    table = grid("batch", "topic", "partition", "offset", why, "value", numbers=("batch", "partition", "offset"))
    for row in rows:
        reason = printable("\n".join(row["reasons"])) if output is SideOutput.QUARANTINE else _window(row)
        value = _text(row["value"])
        shown = value if len(value) <= _WIDTH else value[:_WIDTH] + "…"
        place = str(row["batch_id"]), row["topic"], str(row["partition"]), str(row["offset"])
        table.add_row(*place, reason, shown)
    out.print(table)
    what = f"{total:,} record{'' if total == 1 else 's'}"
    out.print(f"{len(rows):,} of {what}" if total > len(rows) else what)


def _rows(chosen: Chosen | None, limit: int | None) -> tuple[list[dict[str, Any]], int]:
    if chosen is None:
        return [], 0
    return list(chosen.take(limit).rows.to_pylist()), int(chosen.rows.num_rows)


def _window(row: dict[str, Any]) -> str:
    return f"{row['table_name']} {show_moment(row['window_start'])} to {show_moment(row['window_end'])}"


def _text(value: bytes | None) -> str:
    return "(null)" if value is None else printable(value.decode(errors="backslashreplace"))


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return _text(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
