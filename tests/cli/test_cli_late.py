"""`tidemill late` on late tables of any size and from any kind of window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from support.commands import Said, Type
from support.projects import Mill
from tidemill.core.exit_code import ExitCode
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.repairs import repair_lines
from tidemill.log import side_tables
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


def put_many(mill: Mill) -> None:
    """Eight late rows: of two tables, two partitions, three batches, and two without a window."""
    later = {"batch_id": 2, "recorded_at": AT + timedelta(days=1)}
    put_late(mill, [late_row(1, 5), late_row(2, 3), late_row(1, 5, partition=1), late_row(1, 5, table_name="big")])
    put_late(mill, [late_row(3, 5, **later, watermark=AT + timedelta(hours=9)), late_row(4, 3, **later, topic="more")])
    put_late(mill, [late_row(5, **NO_WINDOW, batch_id=n, table_name="deltas") for n in (3, 4)])


def counted(said: Said) -> list[tuple[Any, ...]]:
    """Table, minute of the window's start, first batch, last batch and records of each window."""
    rows = [(row, row["window_start"]) for row in said.lines]
    minutes = [start and (datetime.fromisoformat(start) - AT).total_seconds() / 60 for _, start in rows]
    keys = ("first_batch", "last_batch", "records")
    return [(row["table_name"], at, *(row[key] for key in keys)) for (row, _), at in zip(rows, minutes, strict=True)]


def test_late_records_are_counted_by_table_and_window(tidemill: Type, mill: Mill) -> None:
    put_many(mill)
    said = tidemill("late", "windows", "sums", "--json")
    assert counted(said) == [
        ("big", 5, 1, 1, 1),
        ("deltas", None, 3, 4, 2),
        ("sums", 3, 1, 2, 2),
        ("sums", 5, 1, 2, 3),
    ]
    assert [(row["window_end"], row["watermark"]) for row in said.lines[1::2]] == [
        (None, None),
        ("2026-01-01T00:06:00+00:00", "2026-01-01T09:00:00+00:00"),
    ]
    assert sum(row["records"] for row in said.lines) == len(tidemill("late", "ls", "sums", "--json").lines)


def test_people_see_the_counts_and_what_is_not_shown(tidemill: Type, mill: Mill) -> None:
    put_many(mill)
    *_, deltas, first, last, total = tidemill("late", "windows", "sums").out.splitlines()
    assert deltas.split() == ["3", "4", "deltas", "-", "-", "-", "2"]
    assert " ".join(first.split()) == "1 2 sums 2026-01-01 00:03:00 2026-01-01 00:04:00 2026-01-01 01:04:00 2"
    assert " ".join(last.split()) == "1 2 sums 2026-01-01 00:05:00 2026-01-01 00:06:00 2026-01-01 09:00:00 3"
    assert total == (
        "6 records in 3 windows, and 2 records of tables without windows of time; a record counts for each table that "
        "refused it"
    )
    cut = tidemill("late", "windows", "sums", "--limit", 1, "--table", "sums").out.splitlines()
    assert len(cut) == 4
    assert cut[-1] == "5 records in 2 windows; not shown: 1 line with 3 records in 1 window"
    assert len(tidemill("late", "windows", "sums", "--limit", 3, "--json").lines) == 3


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--batch 2", [("sums", 3, 2, 2, 1), ("sums", 5, 2, 2, 1)]),
        ("--batch 2-3 --table deltas", [("deltas", None, 3, 3, 1)]),
        ("--topic more", [("sums", 3, 2, 2, 1)]),
        ("--partition 1", [("sums", 5, 1, 1, 1)]),
        ("--since 2026-01-02", [("sums", 3, 2, 2, 1), ("sums", 5, 2, 2, 1)]),
        ("--until 2026-01-02 --table sums", [("sums", 3, 1, 1, 1), ("sums", 5, 1, 1, 2)]),
        ("--table sums --until 2025-01-01", []),
    ],
)
def test_only_the_selected_late_records_are_counted(
    tidemill: Type, mill: Mill, words: str, found: list[tuple[Any, ...]]
) -> None:
    put_many(mill)
    assert counted(tidemill("late", "windows", "sums", "--json", *words.split())) == found


def test_counting_reads_a_part_of_the_late_table_at_a_time_and_only_the_columns_it_needs(
    tidemill: Type, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_many(mill)
    whole, read, parts = tidemill("late", "windows", "sums").out, DeltaRsTable.read, []

    def noting(table: DeltaRsTable, **how: Any) -> pa.Table:
        found = read(table, **how)
        parts.append((found.num_rows, sorted(found.column_names)))
        return found

    monkeypatch.setattr(DeltaRsTable, "read", noting)
    monkeypatch.setattr(side_tables, "_AT_ONCE", 1)
    assert tidemill("late", "windows", "sums").out == whole
    needed = ["batch_id", "table_name", "watermark", "window_end", "window_start"]
    assert [part for part in parts if "watermark" in part[1]] == [(rows, needed) for rows in (4, 2, 2)]
    parts.clear()
    tidemill("late", "windows", "sums", "--topic", "more", "--since", "2026-01-01")
    assert {name for _, names in parts for name in names} == {*needed, "topic", "recorded_at"}


@pytest.mark.parametrize("there", [False, True], ids=["no late table", "an empty one"])
def test_without_late_records_there_are_no_windows(tidemill: Type, mill: Mill, there: bool) -> None:
    if there:
        put_late(mill, [])
    said = tidemill("late", "windows", "sums")
    assert (said.code, said.out.splitlines()[-1]) == (ExitCode.DONE, "0 records in 0 windows")
    said = tidemill("late", "windows", "sums", "--json")
    assert (said.code, said.out) == (ExitCode.DONE, "")
    for wrong, told in (("--topic event", "did you mean `events`?"), ("--batch 7", "there is no batch 7")):
        said = tidemill("late", "windows", "sums", *wrong.split())
        assert (said.code, told in said.err) == (ExitCode.WRONG, True), said
