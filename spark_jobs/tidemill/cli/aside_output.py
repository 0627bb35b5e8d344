"""What `tidemill late` and `tidemill quarantine` print."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tidemill.cli.log_output import print_json
from tidemill.cli.output import console, grid
from tidemill.core.amendments import Aside

if TYPE_CHECKING:
    from tidemill.amend.errand import Errand
    from tidemill.core.aside import Choice

_WIDTH = 60


def show_records(errand: Errand, aside: Aside, wanted: Choice, *, limit: int | None, as_json: bool) -> None:
    """The chosen records, oldest first."""
    rows, total = _rows(errand, aside, wanted, limit)
    if as_json:
        for row in rows:
            print_json({name: _json(value) for name, value in row.items()})
        return
    out = console()
    why = "reasons" if aside is Aside.QUARANTINE else "window"
    table = grid("batch", "topic", "partition", "offset", why, "value", numbers=("batch", "partition", "offset"))
    for row in rows:
        reason = "\n".join(row["reasons"]) if aside is Aside.QUARANTINE else _window(row)
        value = _text(row["value"])
        shown = value if len(value) <= _WIDTH else value[:_WIDTH] + "…"
        table.add_row(str(row["batch_id"]), row["topic"], str(row["partition"]), str(row["offset"]), reason, shown)
    out.print(table)
    out.print(f"{len(rows):,} of {total:,} records" if total > len(rows) else f"{total:,} records")


def show_groups(errand: Errand, wanted: Choice, *, as_json: bool) -> None:
    """How many rejected records there are by batch, topic and reason; one with several reasons counts for each."""
    rows, total = _rows(errand, Aside.QUARANTINE, wanted, None)
    counts = Counter((r["batch_id"], r["topic"], reason) for r in rows for reason in r["reasons"])
    if as_json:
        for (batch, topic, reason), count in sorted(counts.items()):
            print_json({"batch_id": batch, "topic": topic, "reason": reason, "records": count})
        return
    out = console()
    table = grid("batch", "topic", "reason", "records", numbers=("batch", "records"))
    for (batch, topic, reason), count in sorted(counts.items()):
        table.add_row(str(batch), topic, reason, f"{count:,}")
    out.print(table)
    out.print(f"{total:,} records")


def _rows(errand: Errand, aside: Aside, wanted: Choice, limit: int | None) -> tuple[list[dict[str, Any]], int]:
    chosen = errand.aside.choose(aside, wanted)
    if chosen is None:
        return [], 0
    return list(chosen.take(limit).rows.to_pylist()), int(chosen.rows.num_rows)


def _window(row: dict[str, Any]) -> str:
    return f"{row['table_name']} {row['window_start']:%Y-%m-%d %H:%M:%S} to {row['window_end']:%H:%M:%S}"


def _text(value: bytes | None) -> str:
    return "(null)" if value is None else value.decode(errors="backslashreplace")


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return _text(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
