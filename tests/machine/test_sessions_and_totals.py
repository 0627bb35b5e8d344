"""Edges of sessions and of totals without a window: what is read, forgotten, taken back and told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import an_amendment, done
from support.commands import type_command
from support.projects import NO_SPARK, NOW, Mill, an_event, sums, totals
from tidemill.core.errors import AmendmentError, Incompatible
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import OfOffsets, OfWindows
from tidemill.core.repair.side_outputs import Selection
from tidemill.inspect.state_size import size_json, state_sizes
from tidemill.maintain.maintenance import maintain
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, preview
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair

pytestmark = pytest.mark.usefixtures("tiny", "early_maintenance")

SESSIONS = {"window": 'Session("10 seconds")'}


def shown(mill: Mill) -> list[tuple[str, float, float, int]]:
    """User, start, end and count of the published sessions."""
    rows = mill.published()
    return sorted(
        (r["user"], *((r[c] - NOW).total_seconds() for c in ("window_start", "window_end")), r["n"]) for r in rows
    )


def redeclared(mill: Mill, old: str, new: str) -> Mill:
    path = mill.project.folder / "pipelines" / "pipeline.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def test_state_of_closed_sessions_is_not_read_until_more_lateness_is_allowed(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS)
    mill.feed([an_event(0), an_event(8), an_event(100, "z")])
    assert mill.run().position.open_since["sums"].since == (int(NOW.timestamp()) + 90) * 1_000_000 + 1
    mill = redeclared(mill, 'allowed_lateness="0 s"', 'allowed_lateness="1 hour"')
    mill.feed([an_event(15), an_event(101, "z")])
    mill.run()
    assert shown(mill) == [("a", 0, 25, 3)]


def test_after_a_drain_what_comes_is_late_and_status_goes_on(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS)
    mill.feed([an_event(0)])
    mill.run(drain=True)
    mill.feed([an_event(5), an_event(500)])
    commit = mill.run()
    assert (commit.accounts["events"].late, shown(mill)) == (2, [("a", 0, 10, 1)])
    flow = mill.project.pipeline("sums")
    [size] = state_sizes(mill.project, flow, commit.position)
    assert size_json(size)["oldest_open_window"] is None


def test_the_oldest_open_session_is_told(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS)
    mill.feed([an_event(0), an_event(9), an_event(15, "b")])
    commit = mill.run()
    [size] = state_sizes(mill.project, mill.project.pipeline("sums"), commit.position)
    assert size_json(size)["oldest_open_window"] == NOW.isoformat()


def test_where_no_session_is_open_none_is_told(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS, lateness="1 minute", delay="200 s")
    mill.feed([an_event(0), an_event(300, "nobody")])
    commit = mill.run()
    [size] = state_sizes(mill.project, mill.project.pipeline("sums"), commit.position)
    assert size_json(size)["oldest_open_window"] is None


def test_another_trigger_of_sessions_needs_a_new_generation(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS, trigger="on_update")
    mill.feed([an_event(0)])
    mill.run()
    changed = redeclared(mill, 'trigger="on_update"', 'trigger="on_close"')
    changed.feed([an_event(1)])
    with pytest.raises(Incompatible, match="trigger"):
        changed.run()


def test_sessions_of_a_table_that_joins_late_start_after_all_that_it_lacks(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS)
    mill.feed([an_event(100, "x")])
    mill.run()
    folder = mill.project.folder
    contract = (folder / "data_contracts" / "sums.odcs.yaml").read_text().replace("sums", "more")
    (folder / "data_contracts" / "more.odcs.yaml").write_text(contract)
    path = folder / "pipelines" / "pipeline.py"
    text = path.read_text()
    again = text[text.index("    (\n") :].replace('"sums"', '"more"')
    path.write_text(_both(text, again))
    mill = Mill(Project.load(folder), mill.session, mill.name)
    mill.feed([an_event(102), an_event(130, "b"), an_event(170, "x")])
    mill.run(from_now=an_amendment(mill).reason)
    users = {row["user"] for row in mill.published("more")}
    assert users == {"b"}, "the session of a@102 may lack records that only the other table has"


def _both(text: str, again: str) -> str:
    """The pipeline with a second table over the same stream."""
    head, rest = text.split("    (\n", 1)
    read = 'pipeline.read("events", contract="events", event_time="ts", delay="0 s")'
    return f"{head}    events = {read}\n    (\n{rest}{again}".replace(f"        {read}", "        events")


def test_backfills_of_windows_find_sessions_that_began_before(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS)
    mill.feed([an_event(second) for second in range(0, 60, 5)])
    mill.run()
    mill.feed([an_event(200, "z")])
    mill.run()
    since, until = NOW + timedelta(seconds=40), NOW + timedelta(seconds=50)
    found = preview(an_amendment(mill), OfWindows(since=since, until=until))
    assert [c.batch_id for c in found.covers] == [1]


def test_records_of_forgotten_sessions_are_not_read_again(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK, **SESSIONS, maintenance={"state": "5 s"})
    for second in (0, 100, 200, 300, 400):
        mill.feed([an_event(second)])
        mill.run()
    list(maintain(mill.project, "sums", keep=timedelta(0), now=datetime.now(UTC)))
    with pytest.raises(AmendmentError, match="removed the state of sessions of sums"):
        done(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert len(shown(mill)) == 4


def test_totals_are_kept_by_maintenance_and_told_by_everything(tmp_path: Path) -> None:
    mill = totals(tmp_path, NO_SPARK, maintenance={"state": "5 s"})
    for second in (0, 100, 200, 300):
        mill.feed([an_event(second), b"{cut"])
        mill.run()
    list(maintain(mill.project, "totals", keep=timedelta(0), now=datetime.now(UTC)))
    mill.feed([an_event(0)])
    mill.run()
    assert [(r["user"], r["n"]) for r in mill.published()] == [("a", 5)]
    found = preview(an_amendment(mill), OfOffsets(since={}, until={}))
    assert (found.windows, len(found.covers)) == ({}, 5)
    for command in (
        ("status", "totals"),
        ("status", "totals", "--json"),
        ("history", "totals"),
        ("explain", "totals"),
        ("explain", "totals", "--key", "a"),
        ("explain", "totals", "--key", "a", "--json"),
        ("backfill", "totals", "--from-time", "2020-01-01", "--dry-run"),
        ("backfill", "totals", "--from-time", "2020-01-01", "--dry-run", "--json"),
    ):
        result = type_command(mill.project.folder, *command)
        assert (result.code, "Traceback" in result.err) == (0, False), (command, result)


def two_batches(mill: Mill) -> Mill:
    for events in ([an_event(0), an_event(8), an_event(5, "b"), b"{cut"], [an_event(16), an_event(100, "z")]):
        mill.feed(events)
        mill.run()
    return mill


@pytest.mark.parametrize("batches", [1, 2, 100])
@pytest.mark.parametrize(
    "declared", [totals, partial(sums, **SESSIONS, lateness="1 minute")], ids=["totals", "sessions"]
)
def test_a_rebuild_gives_what_batches_gave_and_they_go_on(
    tmp_path: Path, declared: Callable[..., Mill], batches: int
) -> None:
    kept, mill = (two_batches(declared(tmp_path / name, NO_SPARK)) for name in ("kept", "rebuilt"))
    before = mill.published()
    done(rebuild(an_amendment(mill, most=-(-6 // batches))))
    mill = Mill(Project.load(mill.project.folder), mill.session, mill.name)
    assert mill.published() == before != []
    for each in (kept, mill):
        each.feed([an_event(21), an_event(30, "b"), an_event(200, "z")])
        each.run()
    assert mill.published() == kept.published()


def test_one_total_of_everything_is_repaired_and_explained(tmp_path: Path) -> None:
    mill = totals(tmp_path, NO_SPARK, keyed=False)
    mill.feed([an_event(0), an_event(1, amount=2_000_000)])
    mill.run()
    done(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert [r["n"] for r in mill.published()] == [1]
    result = type_command(mill.project.folder, "explain", "totals", "--table", "totals")
    assert result.code == 0, result
    assert "published now" in result.out


def test_a_number_of_a_table_with_windows_needs_its_window(tmp_path: Path) -> None:
    mill = sums(tmp_path, NO_SPARK)
    mill.feed([an_event(0), an_event(20)])
    mill.run()
    result = type_command(mill.project.folder, "explain", "sums", "--key", "a")
    assert (result.code, "--window START" in result.err) == (5, True), result


@pytest.mark.parametrize("drain", [False, True])
def test_an_empty_log_publishes_nothing(tmp_path: Path, drain: bool) -> None:
    for make, name in ((sums, "sessions"), (totals, "totals")):
        declared: dict[str, Any] = SESSIONS if name == "sessions" else {}
        mill = make(tmp_path / name, NO_SPARK, **declared)
        mill.run(drain=drain)
        assert mill.published() == []
