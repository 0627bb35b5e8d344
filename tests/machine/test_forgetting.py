"""The state of windows that are closed for good is removed; what would need it is refused, put aside, or left alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from machine.conftest import again, an_errand, ids, run
from support.projects import NOW, Mill, an_event, rows_of
from tidemill import maintenance
from tidemill.amend.backfill import backfill, preview
from tidemill.amend.repair import repair
from tidemill.amend.rewind import rewind
from tidemill.core import failpoints
from tidemill.core.amendments import Aside
from tidemill.core.aside import Choice
from tidemill.core.asked import OfOffsets
from tidemill.core.errors import AmendmentError, DeclarationError, Incompatible, LedgerDamaged, TidemillError
from tidemill.core.events import Forgotten
from tidemill.core.failpoints import boundaries_beside
from tidemill.maintenance import maintain

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
    return sum(chore.count for chore in found if chore.what == GONE)


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
    [commit] = list(repair(an_errand(mill), Aside.LATE, Choice()))
    account = commit.accounts["events"]
    assert (account.read, account.late, account.aggregated) == (3, 2, 1)
    assert aside(mill, "late") == [3, 9]
    assert window(mill, 80) == [(2, 85 + 82)]
    assert [r for r in mill.published() if r not in before] == [r for r in mill.published() if r["n"] == 2]
    assert len(rows_of(mill.project.table_uri("sums", "corrections"))) == 1
    assert len(ids(repair(an_errand(mill), Aside.LATE, Choice()))) == 1, "they may be asked for again, and stay"
    assert aside(mill, "late") == [3, 9]


def test_rejected_records_of_what_is_forgotten_go_to_the_late_table(mill: Mill) -> None:
    tidied(mill)
    mill, before = loosened(mill), mill.published()
    assert aside(mill, "quarantine") == [5]
    [commit] = list(repair(an_errand(mill), Aside.QUARANTINE, Choice()))
    assert commit.accounts["events"].late == 1
    assert (aside(mill, "quarantine"), aside(mill, "late")) == ([], [3, 5, 9])
    assert mill.published() == before


@pytest.mark.parametrize("most", [2, None])
def test_a_backfill_leaves_forgotten_windows_as_they_are_and_loses_no_record(mill: Mill, most: int | None) -> None:
    mill.feed([an_event(82, amount=82)])
    run(mill)
    tidied(mill)
    mill, before = loosened(mill), mill.published()
    found = preview(an_errand(mill, most), ALL)
    assert [(w.start / 1e6 - NOW.timestamp(), w.end / 1e6 - NOW.timestamp()) for w in found.windows["sums"]] == [
        (80, 100)
    ]
    ids(backfill(an_errand(mill, most), ALL))
    assert (aside(mill, "late"), aside(mill, "quarantine")) == ([3, 5, 9], [])
    assert window(mill, 80) == [(2, 85 + 82)], "the late record of a window that is kept counts"
    assert [r for r in mill.published() if r["n"] == 1] == [r for r in before if window(mill, 80) and r["amount"] != 85]
    assert tidied(mill) == 0
    mill.feed([an_event(118)])
    run(mill)
    assert window(mill, 90) == [(1, 99)]


def test_a_rewind_to_where_forgotten_windows_would_fire_is_refused(mill: Mill) -> None:
    tidied(mill)
    with pytest.raises(AmendmentError, match=r"after batch 4, windows that end before 2026-01-01T00:01:20.*removed"):
        list(rewind(an_errand(mill), 4))
    with pytest.raises(AmendmentError, match="removed their state"):
        list(rewind(an_errand(mill), 0))
    published = mill.everything()
    [commit] = list(rewind(an_errand(mill), 6))
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
    next(iter(backfill(an_errand(mill, 3), ALL)))
    assert (tidied(mill), forgotten_until(mill)) == (0, None)
    assert panes(mill)[0] == 0


def test_rows_of_a_backfill_that_began_meanwhile_stay(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    tidied(mill)
    before = panes(mill)
    job = backfill(an_errand(mill, 100), ALL)
    forget = maintenance.KeptTable.forget

    def meanwhile(table: Any, where: Any, **more: Any) -> int:
        monkeypatch.setattr(maintenance.KeptTable, "forget", forget)
        next(iter(job))
        return int(forget(table, where, **more))

    monkeypatch.setattr(maintenance.KeptTable, "forget", meanwhile)
    assert tidied(mill) == 0
    assert panes(mill) == before


def boundaries(mill: Mill) -> Iterator[str]:
    """Every way in which what maintenance writes here can fail."""
    names = [b.name for b in boundaries_beside(mill.project.pipeline("sums")) if b.name.startswith(("forg", "rem"))]
    assert names == ["forgotten", "removed:sums"]
    yield from (f"{side}:{name}=raise" for name in names for side in ("before", "after"))
    yield from (f"{name}=lose" for name in names)


def test_whatever_fails_the_next_maintenance_completes_it_and_batches_go_on(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mill.project.folder
    for number, failure in enumerate(boundaries(mill)):
        folder = source.with_name(f"broken-{number}")
        shutil.copytree(source, folder)
        broken = Mill(type(mill.project).load(folder), mill.session, "sums")
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, failure)
            with suppress(TidemillError, OSError):
                tidied(broken)
        broken.feed([an_event(101)])
        run(broken)
        [commit] = list(repair(an_errand(broken), Aside.LATE, Choice()))
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
