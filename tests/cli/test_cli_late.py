"""`tidemill late` on late tables of any size and from any kind of window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from support.commands import Type
from support.projects import Mill
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.repairs import repair_lines
from tidemill.repair.job import AmendmentJob
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable

AT = datetime(2026, 1, 1, tzinfo=UTC)
NO_WINDOW = {"window_start": None, "window_end": None, "watermark": None}


def late_row(offset: int, minute: int = 0, **more: Any) -> dict[str, Any]:
    """A late record of the window that starts so many minutes after `AT`, refused an hour after its end."""
    start, end = AT + timedelta(minutes=minute), AT + timedelta(minutes=minute + 1)
    place = {"batch_id": 1, "topic": "events", "partition": 0, "offset": offset, "timestamp": AT, "event_time": start}
    window = {"table_name": "sums", "window_start": start, "window_end": end, "watermark": end + timedelta(hours=1)}
    return {**place, **window, "row": "{}", "value": b"x", "recorded_at": AT, **more}


def put_late(mill: Mill, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append these rows to the late table."""
    spec = mill.project.uris("sums").late()
    ensure_table(spec)
    DeltaRsTable(spec).append(pa.Table.from_pylist(rows, arrow_schema(spec.fields)), transaction=None, plan_hash="")


def test_late_records_of_tables_without_windows_of_time_are_listed(tidemill: Type, mill: Mill) -> None:
    put_late(mill, [late_row(1, **NO_WINDOW), late_row(2)])
    for words in (("ls",), ("admit", "--dry-run")):
        said = tidemill("late", words[0], "sums", *words[1:])
        first, second = [line.split() for line in said.out.splitlines() if " events " in line]
        assert first == ["1", "events", "0", "1", "sums", "x"], said
        assert " ".join(second) == "1 events 0 2 sums 2026-01-01 00:00:00 to 2026-01-01 00:01:00 x"
    first, second = tidemill("late", "ls", "sums", "--json").lines
    assert (first["window_start"], first["window_end"], first["watermark"]) == (None, None, None)
    assert second["watermark"] == "2026-01-01T01:01:00+00:00"


def test_a_form_names_late_records_of_tables_without_windows_of_time(mill: Mill) -> None:
    put_late(mill, [late_row(1, **NO_WINDOW), late_row(2)])
    job = AmendmentJob(project=mill.project, pipeline="sums", reason=Reason(by="me", why=""))
    _, first, second = repair_lines(job, SideOutput.LATE, Selection())
    assert first.endswith("events-0 offset 1, put aside by batch 1: late for sums")
    assert second.endswith("late for sums, window of 2026-01-01 00:00:00")
