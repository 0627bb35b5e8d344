"""The state of windows that are closed for good is removed; what would need it is refused, put aside, or left alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from machine.conftest import again, an_amendment, ids, run
from support.projects import NOW, Mill, an_event, rows_of
from tidemill.core.errors import AmendmentError, DeclarationError, Incompatible, LedgerDamaged, TidemillError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.events import Forgotten
from tidemill.core.protocol.failpoints import boundaries_beside
from tidemill.core.repair.selection import OfOffsets, OfWindows
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.core.time.times import micros
from tidemill.maintain import maintenance
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, preview, resume
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind

ALL = OfOffsets(since={}, until={})
GONE = "rows of windows closed for good removed"


@pytest.fixture(autouse=True)
def only_the_newest_commit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "AT_LEAST", 1)


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """Windows of 10 s that closed at the watermark 100, with 10 s of lateness: those that end by 80 can be forgotten.

    Offset 3 is late for the window of 0, 5 is rejected; 6 is late for 70, which is kept.
    """
    mill = a_mill(maintenance={"state": "10 s"})
    for seconds in ((1, 12), (25,), (3, 50), (-1, 75), (85,), (99, 65), (100,)):
        mill.feed([an_event(s, amount=s if s != -1 else 2_000_000) for s in seconds])
        mill.run()
    return mill


def tidied(mill: Mill, **how: Any) -> int:
    """How many rows of state maintenance has removed, because their windows are closed for good."""
    found = list(maintain(again(mill).project, "sums", keep=timedelta(0), now=datetime.now(UTC), **how))
    return sum(task.count for task in found if task.what == GONE)


def a_copy(mill: Mill, places: pytest.TempPathFactory) -> Mill:
    """The same project in another folder."""
    folder = places.mktemp("copy") / "project"
    shutil.copytree(mill.project.folder, folder)
    return Mill(Project.load(folder), mill.session, "sums")


def panes(mill: Mill) -> list[int]:
    """Where rows of state start, in seconds, visible or not."""
    rows = rows_of(mill.project.table_uri("sums", "state", "sums"))
    return sorted({int(r["pane_start"].timestamp() - NOW.timestamp()) for r in rows})


def aside(mill: Mill, table: str) -> list[int]:
    """The offsets in quarantine, or in the late table."""
    return sorted(r["offset"] for r in mill.own(table))


def forgotten_until(mill: Mill) -> float | None:
    """Until when windows are forgotten, in seconds."""
    until = again(mill).project.ledger("sums").view().position.forgotten_until
    return None if until is None else until / 1_000_000 - NOW.timestamp()


def loosened(mill: Mill) -> Mill:
    """The same with a contract that takes every amount."""
    contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 9000000"))
    return again(mill)


def test_rows_of_windows_that_closed_long_ago_are_removed_and_what_is_published_stays(mill: Mill) -> None:
    published = mill.everything()
    assert panes(mill) == [0, 10, 20, 50, 70, 80, 90, 100]
    assert tidied(mill, dry_run=True) == 5
    assert forgotten_until(mill) is None, "a dry run writes nothing"
    assert tidied(mill) == 5
    assert (panes(mill), forgotten_until(mill)) == ([80, 90, 100], 80)
    assert mill.everything() == published
    assert tidied(mill) == 0
    mill.feed([an_event(119)])
    run(mill)
    assert tidied(mill) == 1, "of 80: it ends by 99"
    assert panes(mill) == [90, 100, 110]


def window(mill: Mill, start: int) -> list[tuple[int, int]]:
    """Count and sum of what is published of a window."""
    return [(r["n"], r["amount"]) for r in mill.published() if r["window_start"].timestamp() == NOW.timestamp() + start]


def test_late_records_of_what_is_forgotten_stay_late_and_those_of_what_is_kept_come_in(mill: Mill) -> None:
    mill.feed([an_event(82, amount=82)])
    run(mill)
    tidied(mill)
    assert (aside(mill, "late"), forgotten_until(mill)) == ([3, 9, 11], 80)
    before = mill.published()
    [commit] = list(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    account = commit.accounts["events"]
    assert (account.read, account.late, account.aggregated) == (3, 2, 1)
    assert aside(mill, "late") == [3, 9]
    assert window(mill, 80) == [(2, 85 + 82)]
    assert [r for r in mill.published() if r not in before] == [r for r in mill.published() if r["n"] == 2]
    assert len(rows_of(mill.project.table_uri("sums", "corrections"))) == 1
    assert len(ids(repair(an_amendment(mill), SideOutput.LATE, Selection()))) == 1, (
        "they may be asked for again, and stay"
    )
    assert aside(mill, "late") == [3, 9]


def test_rejected_records_of_what_is_forgotten_go_to_the_late_table(mill: Mill) -> None:
    tidied(mill)
    mill, before = loosened(mill), mill.published()
    assert aside(mill, "quarantine") == [5]
    [commit] = list(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert commit.accounts["events"].late == 1
    assert (aside(mill, "quarantine"), aside(mill, "late")) == ([], [3, 5, 9])
    assert mill.published() == before


def stretches(mill: Mill, wanted: Any = ALL) -> tuple[list[tuple[float, float]], int]:
    """Where windows lie that a backfill would replace, in seconds, and how many it leaves."""
    found = preview(an_amendment(mill), wanted)
    zero = NOW.timestamp()
    return [(w.start / 1e6 - zero, w.end / 1e6 - zero) for w in found.windows["sums"]], found.left.get("sums", 0)


def moment(second: int) -> datetime:
    """So many seconds after the start of the tests' time."""
    return NOW + timedelta(seconds=second)


def some(since: int, until: int) -> OfOffsets:
    """These offsets."""
    place = TopicPartition("events", 0)
    return OfOffsets(since={place: since}, until={place: until})


@pytest.mark.parametrize("most", [2, None])
def test_a_backfill_of_everything_computes_forgotten_windows_from_the_log(mill: Mill, most: int | None) -> None:
    mill.feed([an_event(82, amount=82)])
    run(mill)
    tidied(mill)
    mill = loosened(mill)
    assert sorted(stretches(mill)[0]) == [(0, 30), (50, 60), (70, 80), (80, 100)]
    ids(backfill(an_amendment(mill, most), ALL))
    assert aside(mill, "late") == aside(mill, "quarantine") == [], "what was aside counts now, in windows of then, too"
    assert window(mill, 0) == [(2, 1 + 3)]
    assert window(mill, -10) == [(1, 2_000_000)]
    assert window(mill, 60) == [(1, 65)]
    assert window(mill, 80) == [(2, 85 + 82)]
    assert tidied(mill) > 0
    assert panes(mill)[0] == 80, "what it wrote is removed like all state of windows that are closed"


@pytest.mark.parametrize("most", [1, None])
def test_a_backfill_of_some_leaves_windows_that_others_have_a_part_in(mill: Mill, most: int | None) -> None:
    mill.feed([an_event(101)])
    run(mill)
    tidied(mill)
    mill, before = loosened(mill), mill.published()
    # Batch 3 made window 50 and had a late record of 0, batch 4 made 70 and rejected a record of -10.
    assert stretches(mill, some(3, 6)) == ([(50, 60), (70, 80)], 0)
    ids(backfill(an_amendment(mill, most), some(3, 6)))
    assert aside(mill, "late") == [3, 5, 9], "window 0 is of batch 1, and -10 beyond all that is read"
    assert aside(mill, "quarantine") == []
    assert mill.published() == before


@pytest.mark.parametrize("most", [1, pytest.param(10, marks=pytest.mark.long)])
def test_whatever_fails_in_such_a_backfill_what_was_aside_stays_aside(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, most: int
) -> None:
    mill.feed([an_event(101)])
    run(mill)
    tidied(mill)
    expected = loosened(mill).everything() | {"quarantine": []}
    expected["late"] = [{"offset": 3}, {"offset": 5}, {"offset": 9}]
    places = ("quarantine", "late", "published:sums", *(["waiting:late"] if most == 1 else []))
    for failure in (f"{side}:{p}=raise" for p in places for side in ("before", "after")):
        broken = a_copy(mill, tmp_path_factory)
        with monkeypatch.context() as patch, suppress(TidemillError):
            patch.setenv(failpoints.VARIABLE, failure)
            ids(backfill(an_amendment(broken, most), some(3, 6)))
        if broken.project.ledger("sums").view().open_batch is not None:
            run(broken)
        if broken.project.ledger("sums").view().position.backfill is not None:
            ids(resume(an_amendment(broken, most)))
        found = broken.everything()
        assert found["sums"] == expected["sums"], failure
        assert found["quarantine"] == [], failure
        assert [{"offset": r["offset"]} for r in sorted(found["late"], key=lambda r: r["offset"])] == expected["late"]


def test_a_window_that_another_batch_has_a_part_in_is_left_and_named(mill: Mill) -> None:
    mill.feed([an_event(101), an_event(92)])
    run(mill)
    mill.feed([an_event(140)])
    run(mill)
    tidied(mill)
    assert forgotten_until(mill) == 120
    # Batch 6 made window 90, batch 8 brought something to it.
    with pytest.raises(AmendmentError, match=r"all 1 windows over these records end before 2026-01-01 00:02:00") as no:
        preview(an_amendment(mill), some(8, 9))
    assert "--windows" in no.value.fix
    windows = OfWindows(since=moment(90), until=moment(100))
    assert stretches(mill, windows) == ([(90, 100)], 1), "100 is of batches 7 and 8"
    published = mill.published()
    assert window(mill, 90) == [(2, 99 + 1)]
    ids(backfill(an_amendment(mill), windows))
    assert mill.published() == published


def test_a_fold_of_slices_that_lost_rows_is_known_to_have_had_them(mill: Mill) -> None:
    tidied(mill)
    [folded] = list(fold(an_amendment(mill), Folding(group=4, overlap=0.1, groups=1)))
    ledger = again(mill).project.ledger("sums")
    found = {c.batch_id: c for c in ledger.past().covers(ledger.view().position.slices)}
    assert {b for r in found[folded.batch_id].batches for b in r.batches} >= {1, 2, 3}
    span = found[folded.batch_id].panes["sums"]
    assert (span.first, span.last) == (micros(moment(0)), micros(moment(50))), "though all of these rows are gone"
    assert panes(mill)[0] == 80


def test_a_rewind_to_where_forgotten_windows_would_fire_is_refused(mill: Mill) -> None:
    tidied(mill)
    with pytest.raises(AmendmentError, match=r"after batch 4, windows that end before 2026-01-01 00:01:20.*removed"):
        list(rewind(an_amendment(mill), 4))
    with pytest.raises(AmendmentError, match="removed their state"):
        list(rewind(an_amendment(mill), 0))
    published = mill.everything()
    [commit] = list(rewind(an_amendment(mill), 6))
    assert commit.position.watermark / 1e6 - NOW.timestamp() == 99
    assert forgotten_until(mill) == 80, "a rewind brings nothing back"
    run(mill)
    assert mill.everything() == published


def test_lateness_beyond_what_is_kept_is_refused_by_name(mill: Mill) -> None:
    tidied(mill)
    file = mill.project.folder / "pipelines" / "pipeline.py"
    text = file.read_text()
    file.write_text(text.replace('allowed_lateness="10 s"', 'allowed_lateness="11 s"'))
    with pytest.raises(DeclarationError, match=r"11 seconds.*\[maintenance\] state.*10 seconds"):
        run(mill)
    settings = mill.project.folder / "tidemill.toml"
    settings.write_text(settings.read_text().replace('"state" = "10 s"', '"state" = "1 hour"'))
    file.write_text(text.replace('allowed_lateness="10 s"', 'allowed_lateness="30 s"'))
    mill.feed([an_event(101)])
    with pytest.raises(Incompatible, match=r"allowed_lateness of sums, 30 seconds") as refused:
        run(mill)
    assert "at most 20 seconds" in refused.value.fix
    file.write_text(text.replace('allowed_lateness="10 s"', 'allowed_lateness="20 s"'))
    run(mill)


def test_nothing_is_forgotten_while_a_batch_or_a_backfill_is_open(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(failpoints.VARIABLE, "after:planned=raise")
        mill.feed([an_event(101)])
        with pytest.raises(TidemillError):
            run(mill)
    assert (tidied(mill), forgotten_until(mill)) == (0, None)
    run(mill)
    next(iter(backfill(an_amendment(mill, 3), ALL)))
    assert (tidied(mill), forgotten_until(mill)) == (0, None)
    assert panes(mill)[0] == 0


def test_rows_of_a_backfill_that_began_meanwhile_stay(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    tidied(mill)
    published, job = mill.published(), backfill(an_amendment(mill, 3), ALL)
    forget = maintenance.KeptTable.forget

    def meanwhile(table: Any, where: Any, **more: Any) -> int:
        monkeypatch.setattr(maintenance.KeptTable, "forget", forget)
        next(job)
        return int(forget(table, where, **more))

    monkeypatch.setattr(maintenance.KeptTable, "forget", meanwhile)
    assert tidied(mill) == 0
    assert panes(mill)[:2] == [0, 10], "what its first batch wrote is there for the last one"
    ids(job)
    assert window(mill, 10) == [(1, 12)]
    assert [r for r in mill.published() if r["window_start"] == moment(10)] == [
        r for r in published if r["window_start"] == moment(10)
    ]


def boundaries(mill: Mill) -> Iterator[str]:
    """Every way in which what maintenance writes here can fail."""
    names = [b.name for b in boundaries_beside(mill.project.pipeline("sums")) if b.name.startswith(("forg", "rem"))]
    assert names == ["forgotten", "removed:sums"]
    yield from (f"{side}:{name}=raise" for name in names for side in ("before", "after"))
    yield from (f"{name}=lose" for name in names)


def test_whatever_fails_the_next_maintenance_completes_it_and_batches_go_on(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for failure in boundaries(mill):
        broken = a_copy(mill, tmp_path_factory)
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, failure)
            with suppress(TidemillError, OSError):
                tidied(broken)
        broken.feed([an_event(101)])
        run(broken)
        [commit] = list(repair(an_amendment(broken), SideOutput.LATE, Selection()))
        assert forgotten_until(broken) in (80, None), failure
        if forgotten_until(broken) is None:
            assert commit.accounts["events"].late == 0, failure
        else:
            assert (commit.accounts["events"].late, aside(broken, "late")) == (2, [3, 9]), failure
        tidied(broken)
        assert panes(broken)[0] == 80, failure
        events = [e.event for e in broken.project.ledger("sums").entries() if isinstance(e.event, Forgotten)]
        assert len(events) in (1, 2), failure


def test_a_ledger_that_forgot_that_state_was_removed_is_refused(mill: Mill) -> None:
    ledger = Path(mill.project.table_uri("sums", "ledger"))
    shutil.copytree(ledger, ledger.with_name("kept"))
    tidied(mill)
    shutil.rmtree(ledger)
    shutil.move(ledger.with_name("kept"), ledger)
    mill.feed([an_event(101)])
    with pytest.raises(LedgerDamaged, match="maintenance has removed rows of table state of sums"):
        run(mill)


def test_event_times_before_1970_are_forgotten_as_well(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill(maintenance={"state": "10 s"})
    long_ago = -int(NOW.timestamp()) - 1_000_000
    for second in (0, 100, 200, 210):
        mill.feed([an_event(long_ago + second)])
        mill.run()
    assert tidied(mill) == 2
    assert panes(mill) == [long_ago + 200, long_ago + 210]
    mill.feed([an_event(long_ago + 300)])
    run(mill)
    assert len(mill.published()) == 4
