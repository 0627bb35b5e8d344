"""Prints `tidemill late` and `tidemill quarantine`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidemill.cli.output import console, grid
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.errors import printable
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.time.times import show_moment

if TYPE_CHECKING:
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.repair.job import AmendmentJob

_WIDTH = 60
_PLACE = ("batch_id", "topic", "partition", "offset")


def show_repair(  # noqa: PLR0913  which records, and how they are shown
    amendment: AmendmentJob, output: SideOutput, wanted: Selection, *, mixed: bool, full: bool, as_json: bool
) -> None:
    """Print the records that a repair would take, and how many batches it would need.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
        TidemillError: the repair would be refused, for this reason.
    """
    from tidemill.inspect.repairs import about_firings
    from tidemill.repair.repair import batches_needed, check_repair

    limit, whole = None if as_json else 50, None if full else "--full"
    show_records(amendment, output, wanted, limit=limit, as_json=as_json, whole=whole)
    check_repair(amendment, output, wanted, mixed=mixed)
    if as_json:
        return
    chosen = amendment.side_tables.choose(output, wanted, columns=_PLACE)
    batches = 0 if chosen is None else batches_needed(amendment, output, chosen)
    console().print(f"that takes {many(batches, 'batch')}")
    if note := about_firings(amendment, output, wanted):
        console().print(note)
    console().print("nothing was done: this is a dry run")


def show_records(  # noqa: PLR0913  which records, and how they are shown
    amendment: AmendmentJob,
    output: SideOutput,
    wanted: Selection,
    *,
    limit: int | None,
    as_json: bool,
    whole: str | None = "--full",
) -> None:
    """Print the chosen records, oldest first. `whole` is the option that shows whole values; None shows them so.

    Raises:
        AmendmentError: nothing is selected, by a name that does not exist.
    """
    from tidemill.repair.named import check_selected

    first = amendment.side_tables.first(output, wanted, limit)
    if first is None or not first.total:
        check_selected(amendment, output, wanted)
    rows = [] if first is None else list(first.chosen.rows.to_pylist())
    if as_json:
        for row in rows:
            print_json({name: _json(value) for name, value in row.items()})
    else:
        _show_rows(output, rows, 0 if first is None else first.total, whole=whole)


def _show_rows(output: SideOutput, rows: list[dict[str, Any]], total: int, *, whole: str | None) -> None:
    out = console()
    why = "reasons" if output is SideOutput.QUARANTINE else "table and window"
    table = grid("batch", "topic", "partition", "offset", why, "value", numbers=("batch", "partition", "offset"))
    cut = 0
    for row in rows:
        reason = printable("\n".join(row["reasons"])) if output is SideOutput.QUARANTINE else _window(row)
        value = _text(row["value"])
        if whole and len(value) > _WIDTH:
            cut, value = cut + 1, value[:_WIDTH] + "…"
        place = str(row["batch_id"]), row["topic"], str(row["partition"]), str(row["offset"])
        table.add_row(*place, reason, value)
    out.print(table)
    what = many(total, "record")
    out.print(f"{len(rows):,} of {what}" if total > len(rows) else what)
    if cut:
        out.print(
            f"{cut:,} value{' is' if cut == 1 else 's are'} cut after {_WIDTH} characters; {whole} shows all of it"
        )


def _window(row: dict[str, Any]) -> str:
    """The table that refused a row, and the row's window. Buffers and the window of all times have no bounds."""
    if row["window_start"] is None:
        return str(row["table_name"])
    return f"{row['table_name']} {show_moment(row['window_start'])} to {show_moment(row['window_end'])}"


def _text(value: bytes | None) -> str:
    return "(null)" if value is None else printable(value.decode(errors="backslashreplace"))


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return _text(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
