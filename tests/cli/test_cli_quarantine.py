"""`tidemill quarantine ls` on a table with tens of thousands of different texts, of now and of before."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from support.projects import Mill, an_event
from tidemill.core.contract.reasons import stored_reason
from tidemill.core.exit_code import ExitCode
from tidemill.tables.arrow_types import arrow_schema
from tidemill.tables.create import ensure_table
from tidemill.tables.deltars import DeltaRsTable

RECORDS = 20_000
AT = datetime(2026, 1, 1, tzinfo=UTC)


def put_aside(
    mill: Mill, reasons: list[list[str]], batches: list[int] | None = None, values: list[bytes] | None = None
) -> None:
    spec = mill.project.uris("sums").quarantine()
    ensure_table(spec)
    schema = arrow_schema(spec.fields)
    columns = {
        "batch_id": batches or [1] * len(reasons),
        "topic": ["events"] * len(reasons),
        "partition": [0] * len(reasons),
        "offset": list(range(len(reasons))),
        "timestamp": [AT] * len(reasons),
        "reasons": reasons,
        "value": values or [b"[/bold] %d" % n for n in range(len(reasons))],
        "recorded_at": [AT] * len(reasons),
    }
    DeltaRsTable(spec).append(pa.table(columns, schema=schema), transaction=None, plan_hash="")


@pytest.mark.parametrize("before", [True, False], ids=["of before", "of now"])
def test_many_different_texts_are_a_few_lines_with_samples(tidemill, mill, before):
    texts = [f'`amount`: expected an integer, found "[/red]{n}"' for n in range(RECORDS)]
    texts += [f"unknown field `{n}`" for n in range(RECORDS)]
    reasons = [[text if before else stored_reason(text), "amount.maximum"] for text in texts]
    put_aside(mill, reasons)
    said = tidemill("quarantine", "ls", "sums")
    assert said.code == ExitCode.DONE
    assert len(said.out.splitlines()) <= 8
    assert '`amount`: expected an integer, found "[/red]0"' in said.out
    groups = {row["reason"]: row for row in tidemill("quarantine", "ls", "sums", "--json").lines}
    assert {name: row["records"] for name, row in groups.items()} == {
        "amount.maximum": 2 * RECORDS,
        "unknown_field": RECORDS,
        "wrong_value(amount)": RECORDS,
    }
    assert groups["unknown_field"]["samples"] == ["unknown field `0`", "unknown field `1`", "unknown field `2`"]
    assert groups["amount.maximum"]["samples"] == []
    assert f"{RECORDS:,} records" in tidemill("quarantine", "ls", "sums", "--rule", "wrong_value").out


def test_what_is_listed_does_not_grow_with_the_number_of_batches(tidemill, mill):
    batches = list(range(1, 1001))
    put_aside(mill, [[stored_reason(f"unknown field `{n}`"), "amount.maximum"] for n in batches], batches)
    put_aside(mill, [["amount.maximum"]], [7])
    said = tidemill("quarantine", "ls", "sums")
    assert len(said.out.splitlines()) == 5
    assert "1,001 records" in said.out
    maximum, unknown = tidemill("quarantine", "ls", "sums", "--json").lines
    assert (maximum["reason"], maximum["records"], maximum["first_batch"], maximum["last_batch"]) == (
        "amount.maximum",
        1001,
        1,
        1000,
    )
    assert "batch_id" not in maximum
    assert unknown["samples"] == ["unknown field `1`", "unknown field `2`", "unknown field `3`"]
    apart = tidemill("quarantine", "ls", "sums", "--by-batch", "--json").lines
    assert len(apart) == 2000
    [seventh] = [row for row in apart if row["batch_id"] == 7 and row["reason"] == "amount.maximum"]
    assert (seventh["records"], seventh["first_batch"], seventh["last_batch"]) == (2, 7, 7)
    assert len(tidemill("quarantine", "ls", "sums", "--by-batch").out.splitlines()) == 2003


def test_records_are_counted_without_their_values(tidemill, mill, monkeypatch):
    put_aside(mill, [["amount.maximum"]])
    read, columns = DeltaRsTable.read, []

    def noting(table, **how):
        columns.append(how.get("columns"))
        return read(table, **how)

    monkeypatch.setattr(DeltaRsTable, "read", noting)
    tidemill("quarantine", "ls", "sums", "--since", "2025-01-01")
    assert [sorted(names) for names in columns if names is None or "reasons" in names] == [
        ["batch_id", "offset", "partition", "reasons", "recorded_at", "topic"]
    ]


def test_records_that_look_like_colours_are_shown_as_they_are(tidemill, mill):
    put_aside(mill, [[stored_reason("unknown field `[/x]`")]])
    said = tidemill("quarantine", "show", "sums")
    assert said.code == ExitCode.DONE
    assert "unknown field `[/x]`" in said.out
    assert "[/bold] 0" in said.out


def test_what_records_say_cannot_write_to_the_terminal(tidemill, mill):
    put_aside(mill, [["wrong_value(a): \x1b[2J[bold]x[/]\r\x9b"]])
    for command in (("quarantine", "ls"), ("quarantine", "show")):
        said = tidemill(*command, "sums").out
        assert "\x1b" not in said
        assert "\x9b" not in said
        assert "\\x1b[2J[bold]x[/]\\r\\x9b" in said


def test_a_repair_of_nothing_says_where_to_look(tidemill, mill):
    put_aside(mill, [["wrong_value(a): b"]])
    for rule in ("cut_json", "amount.maximum"):
        said = tidemill("quarantine", "replay", "sums", "--rule", rule)
        assert (said.code, "no such record is there; see `tidemill quarantine ls sums`" in said.out) == (7, True)


@pytest.mark.parametrize("words", ["ls", "show", "replay", "replay --dry-run", "show --json"])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (("--rule", "wrong_vlaue"), "did you mean `wrong_value(a)`?"),
        (("--topic", "event"), "did you mean `events`?"),
        (("--batch", "7"), "there is no batch 7: no batch was planned yet"),
        (("--partition", "3"), "there is no partition 3 that was read; there are: 0"),
    ],
)
def test_a_misspelt_name_is_refused_by_every_command(tidemill, mill, words, wrong, told):
    put_aside(mill, [["wrong_value(a): b"]])
    first, *more = words.split()
    said = tidemill("quarantine", first, "sums", *more, *wrong)
    assert (said.code, told in said.err, said.out) == (ExitCode.WRONG, True, ""), said


def test_late_records_of_a_table_that_nobody_publishes_are_refused(tidemill, mill):
    for words in (("ls",), ("windows",), ("windows", "--json"), ("admit",), ("admit", "--dry-run")):
        said = tidemill("late", words[0], "sums", *words[1:], "--table", "sum")
        assert (said.code, "did you mean `sums`?" in said.err) == (ExitCode.WRONG, True), words
    for command in ("ls", "windows"):
        assert "0 records" in tidemill("late", command, "sums", "--table", "sums").out


def test_cut_values_are_counted_and_can_be_seen_whole(tidemill, mill):
    put_aside(mill, [["a"], ["b"]], values=[b"x" * 61, b"y" * 60])
    said = tidemill("quarantine", "show", "sums").out
    assert f"{'x' * 60}…" in said
    assert "1 value is cut after 60 characters; --full shows all of it" in said
    replay = ("quarantine", "replay", "sums", "--dry-run")
    assert "--full shows all of it" in tidemill(*replay).out
    assert "x" * 61 in tidemill(*replay, "--full").out
    whole = tidemill("quarantine", "show", "sums", "--full").out
    assert ("x" * 61 in whole, "cut after" in whole) == (True, False)
    assert tidemill("quarantine", "show", "sums", "--json").lines[0]["value"] == "x" * 61


def test_values_of_records_that_are_not_shown_are_not_read(tidemill, mill, monkeypatch):
    batches = [3, 2, 2, 1]
    put_aside(mill, [["a"]] * 4, batches)
    read, rows = DeltaRsTable.read, []

    def noting(table, **how):
        found = read(table, **how)
        rows.extend(found["value"].to_pylist() if "value" in found.column_names else [])
        return found

    monkeypatch.setattr(DeltaRsTable, "read", noting)
    assert [row["offset"] for row in tidemill("quarantine", "show", "sums", "--limit", 2, "--json").lines] == [3, 1]
    assert sorted(rows) == [b"[/bold] 1", b"[/bold] 2", b"[/bold] 3"]
    rows.clear()
    assert "1 of 4 records" in tidemill("quarantine", "show", "sums", "--limit", 1).out
    assert rows == [b"[/bold] 3"]


@pytest.mark.parametrize(
    "command",
    [
        "quarantine show sums --offset",
        "quarantine show sums --partition",
        "quarantine show sums --limit",
        "late windows sums --partition",
        "late windows sums --limit",
        "history sums --last",
        "audit show sums --batch",
        "rewind sums --dry-run --to",
        "plan sums --dry-run --limit",
        "log cat events --limit",
        "log cat events --from",
    ],
)
def test_no_number_is_too_large_for_a_clear_answer(tidemill, mill, command):
    put_aside(mill, [["wrong_value(a): b"]])
    mill.feed([an_event(1)])
    for number in (2**31, 2**63 - 1, 2**63, 10**30):
        said = tidemill(*command.split(), str(number))
        assert said.code in {0, 2, 5, 7}, (number, said.err)
