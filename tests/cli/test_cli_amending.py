"""The commands that go back, as somebody types them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.cli.main import main
from tidemill.core.exit_code import ExitCode
from tidemill.core.identity.semantics import SEMANTICS
from tidemill.core.protocol.failpoints import VARIABLE

pytestmark = pytest.mark.spark

Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def mill(tmp_path: Path, spark: Any) -> Mill:
    """Two batches: a late record and a rejected one are put aside."""
    made = sums(tmp_path, spark)
    made.feed([an_event(1), an_event(12), an_event(40)])
    made.run()
    made.feed([an_event(3), b"{cut", an_event(60)])
    made.run()
    return made


@pytest.fixture
def typed(mill: Mill, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Runs a command in the project: exit code, standard output, standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises((SystemExit, typer.Exit)) as ended:
            main(["--project", str(mill.project.folder), *arguments], session=lambda _: mill.session)
        found = capsys.readouterr()
        return int(ended.value.code or 0), found.out, found.err

    return run


def lines(text: str) -> list[dict[str, Any]]:
    """JSON, one object a line."""
    return [json.loads(line) for line in text.splitlines()]


def test_a_backfill_is_shown_before_it_is_done(mill: Mill, typed: Typed) -> None:
    code, out, _ = typed("backfill", "sums", "--from-offsets", "events-0:1", "--dry-run", "--json")
    [shown] = lines(out)
    assert (code, shown["ranges"], shown["records"], shown["supersedes"]) == (0, ["events-0 [0, 6)"], 6, [1, 2])
    assert mill.project.ledger("sums").view().position.batch_id == 2
    code, out, _ = typed("backfill", "sums", "--from-offsets", "events-0:1", "--why", "a fix", "--json")
    assert (code, lines(out)[-1]["outcome"]) == (0, "done")
    assert mill.own("late") == []
    assert "nothing was done" in typed("backfill", "sums", "--windows", "2026-01-01/2026-01-02", "--dry-run")[1]


def test_the_estimate_says_that_whole_batches_are_read_and_which_windows_change(mill: Mill, typed: Typed) -> None:
    _, out, _ = typed("backfill", "sums", "--from-offsets", "events-0:1", "--to-offsets", "events-0:2", "--dry-run")
    assert re.search(r"reads +\d records, in whole batches: events-0 \[0, \d\)", out)
    assert ("windows from" in out) is ("no window that is published now" not in out)


def test_the_estimate_of_one_record_whose_window_is_open_changes_no_window(
    tmp_path: Path, spark: Any, capsys: Any
) -> None:
    mill = sums(tmp_path, spark)
    mill.feed([an_event(1)])
    mill.run()
    with pytest.raises(SystemExit):
        main(["--project", str(mill.project.folder), "backfill", "sums", "--from-offsets", "events-0:0", "--dry-run"])
    out = capsys.readouterr().out
    assert "1 record, in whole batches" in out
    assert "changes   no window that is published now" in out
    assert "windows from" not in out


def test_a_pipeline_that_has_read_nothing_says_so(tmp_path: Path, capsys: Any) -> None:
    mill = sums(tmp_path, NO_SPARK)
    for arguments in (["backfill", "sums", "--from-offsets", "events-0:0", "--dry-run"], ["gone", "sums", "events-0"]):
        with pytest.raises(SystemExit) as ended:
            main(["--project", str(mill.project.folder), *arguments])
        assert ended.value.code == 5
        said = capsys.readouterr().err
        assert "sums has read nothing yet, neither of events-0 nor of another partition" in said
        assert "`tidemill run sums` reads what is there" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "wants offsets, times or windows"),
        (("--from-offsets", "events-0:1,events-0:2"), "events-0 is named twice"),
        (("--from-time", "yesterday"), "expected a time such as"),
        (("--from-offsets", "events:1"), "expected TOPIC-PARTITION:OFFSET"),
        (("--from-offsets", "events-0:-5"), "an offset is 0 to 9223372036854775807, found -5 in 'events-0:-5'"),
        (("--to-offsets", "events-0:9223372036854775808"), "found 9223372036854775808 in"),
        (("--from-offsets", "other-0:1"), "has read nothing of other-0"),
        (("--from-time", "2026-01-01", "--windows", "2026-01-01/2026-01-02"), "or times, or windows"),
        (("--windows", "2026-01-02/2026-01-01"), "is not before"),
        (("--resume",), "no backfill is open"),
    ],
)
def test_a_backfill_that_cannot_be_done_says_why_and_what_to_do(
    typed: Typed, arguments: tuple[str, ...], said: str
) -> None:
    code, _, err = typed("backfill", "sums", *arguments)
    assert code == ExitCode.WRONG
    assert said in err
    assert "fix:" in err


def test_late_records_are_listed_and_admitted_once(mill: Mill, typed: Typed) -> None:
    [row] = lines(typed("late", "ls", "sums", "--json")[1])
    assert (row["offset"], row["batch_id"], row["table_name"]) == (3, 2, "sums")
    [window] = lines(typed("late", "windows", "sums", "--json")[1])
    assert window == {
        "first_batch": 2,
        "last_batch": 2,
        "table_name": "sums",
        "window_start": row["window_start"],
        "window_end": row["window_end"],
        "watermark": row["watermark"],
        "records": 1,
        "partly_late": 0,
    }
    assert "nothing was done" in typed("late", "admit", "sums", "--dry-run")[1]
    assert typed("late", "admit", "sums")[0] == ExitCode.DONE
    assert typed("late", "admit", "sums")[0] == ExitCode.NOTHING_TO_DO
    assert typed("late", "windows", "sums", "--json")[1] == ""
    assert typed("late", "windows", "sums")[1].endswith("0 records in 0 windows\n")
    assert next(r["n"] for r in mill.published()) == 2


def test_quarantine_is_counted_shown_and_replayed(typed: Typed) -> None:
    [group] = lines(typed("quarantine", "ls", "sums", "--json")[1])
    assert (group["first_batch"], group["last_batch"], group["topic"], group["records"]) == (2, 2, "events", 1)
    [record] = lines(typed("quarantine", "show", "sums", "--json")[1])
    assert (record["offset"], record["value"]) == (4, "{cut")
    assert "1 record" in typed("quarantine", "show", "sums")[1]
    code, out, _ = typed("quarantine", "replay", "sums", "--batch", "2", "--why", "a mended contract", "--json")
    assert (code, lines(out)[0]["rejected"]) == (0, 1)
    assert "a mended contract" in " ".join(typed("history", "sums")[1].split())
    assert typed("quarantine", "replay", "sums", "--batch", "2")[0] == ExitCode.NOTHING_TO_DO


def test_a_rewind_a_verification_and_a_trace_follow_each_other(mill: Mill, typed: Typed) -> None:
    assert typed("rewind", "sums", "--to", "1", "--why", "a try")[0] == 0
    assert typed("run", "sums")[0] == 0
    code, out, _ = typed("verify", "sums", "--json")
    assert (code, lines(out)) == (
        0,
        [{"table": "sums", "rows": 3, "different": 0, "missing": 0, "extra": 0, "examples": []}],
    )
    [found] = lines(typed("explain", "sums", "--window", "2026-01-01T00:00:00Z", "--key", "a", "--json")[1])
    assert [s["batch_id"] for s in found["slices"]] == [1]
    published = found["publications"]
    assert published
    assert all((p["attempt"], p["semantics"]) == (1, SEMANTICS) for p in published)
    said = typed("explain", "sums", "--window", "2026-01-01", "--key", "a")[1]
    assert "published now" in said
    assert "semantics" in said
    assert typed("maintain", "sums", "--dry-run")[0] == 0
    assert "rewind to batch 1" in typed("history", "sums")[1]


def test_a_batch_that_is_not_blocked_has_nothing_to_decide(typed: Typed) -> None:
    for command in (("show",), ("accept", "--why", "x"), ("divert", "--why", "x"), ("retry",)):
        code, _, err = typed("audit", command[0], "sums", *command[1:])
        assert (code, "no batch" in err) == (ExitCode.WRONG, True)


GOES_BACK = {
    "repair": (["late", "admit", "sums"], [3, 4]),
    "backfill": (["backfill", "sums", "--from-offsets", "events-0:1"], [0, 6]),
}
"""What is typed, and the first and the next offset that it reads."""


@pytest.mark.parametrize("kind", GOES_BACK)
def test_the_plan_of_what_goes_back_and_is_open_says_what_it_reads(
    mill: Mill, typed: Typed, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    command, expected = GOES_BACK[kind]
    monkeypatch.setenv(VARIABLE, "after:planned=raise")
    assert typed(*command)[0] != ExitCode.DONE
    monkeypatch.delenv(VARIABLE)
    code, out, _ = typed("plan", "sums", "--dry-run", "--json")
    [shown] = lines(out)
    assert (code, shown["kind"], shown["open"], shown["watermark"]) == (0, kind, True, None)
    [read] = shown["ranges"]
    assert [read["from_offset"], read["until_offset"]] == expected
    assert read["topic_id"] == mill.log.topic("events").topic_id
    out = typed("plan", "sums", "--dry-run")[1]
    assert f"sums: batch 3 is open, a {kind}, and would be continued" in out.replace("\n", " ")
    assert "watermark" not in out
