"""Ways back that cross each other, maintenance and crashes: each case was wrong once."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from machine.conftest import WHO, again, an_amendment, ids, run
from support.projects import Mill, an_event, rows_of, somebody
from tidemill.core.errors import AmendmentError, OffsetsLost, TableDamaged, TopicRecreated
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Planned
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.maintain.maintenance import maintain
from tidemill.maintain.state_compaction import fold
from tidemill.repair.backfill import backfill, cancel, resume
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import preview, rewind
from tidemill.run import after_commit
from tidemill.run.batch import NothingToDo
from tidemill.run.claiming import Request, next_plan
from tidemill.tables.keeping import KeptTable

ALL = OfOffsets(since={}, until={})
PLACE = TopicPartition("events", 0)
EASY = Folding(group=4, overlap=1.0, groups=1)
Make = Callable[..., Mill]


def fed(mill: Mill, batches: int, *, bad: bool = False, every: int = 17) -> Mill:
    """So many batches of an event each, and a broken record."""
    for number in range(batches):
        mill.feed([an_event(every * number + 1), *([b"{cut"] if bad else [])])
        run(mill)
    return mill


def tidied(mill: Mill, keep: timedelta = timedelta(0)) -> None:
    """All maintenance tasks."""
    for _ in maintain(again(mill).project, "sums", keep=keep, now=datetime.now(UTC)):
        pass


def places(mill: Mill, table: str) -> list[int]:
    """The offsets of the records in the quarantine or the late table."""
    return sorted(r["offset"] for r in rows_of(again(mill).project.table_uri("sums", table)))


def position(mill: Mill) -> Any:
    """Where the published generation stands."""
    return again(mill).project.ledger("sums").view().position


def died(mill: Mill, monkeypatch: pytest.MonkeyPatch, failure: str, act: Callable[[], Any]) -> None:
    """The act fails where it is told to."""
    monkeypatch.setenv(VARIABLE, failure)
    with pytest.raises(Injected):
        act()
    monkeypatch.delenv(VARIABLE)


def folded(mill: Mill, *, more: int) -> None:
    """A window of eight slices that were folded, and more batches behind."""
    for number in range(8):
        mill.feed([an_event(100 + number)])
        run(mill)
    ids(fold(an_amendment(mill), EASY))
    for number in range(more):
        mill.feed([an_event(100 + number, "b")])
        run(mill)


def closed(mill: Mill) -> list[dict[str, Any]]:
    """What is published once that window has closed."""
    mill.feed([an_event(200, "z")])
    while not isinstance(run(mill), NothingToDo):
        pass
    return again(mill).published()


def folded_and_rewound(mill: Mill, tidy: Callable[[], None]) -> list[dict[str, Any]]:
    """A window of eight slices that were folded, and shown again by a rewind behind the fold."""
    folded(mill, more=6)
    ids(rewind(an_amendment(mill), 8))
    for _ in range(4):
        run(mill, limit=1)
    tidy()
    return closed(mill)


def test_maintenance_keeps_slices_that_a_rewind_showed_again(a_mill: Make) -> None:
    mill = a_mill()
    [a, _] = folded_and_rewound(mill, lambda: tidied(mill))
    assert (a["user"], a["n"]) == ("a", 8)


def test_maintenance_keeps_what_an_open_rewind_goes_back_to(a_mill: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = a_mill()
    folded(mill, more=14)
    died(mill, monkeypatch, "after:planned=raise", lambda: ids(rewind(an_amendment(mill), 8)))
    tidied(mill)
    ids(rewind(an_amendment(mill), 8))
    assert [(r["user"], r["n"]) for r in closed(mill) if r["user"] == "a"] == [("a", 8)]


def test_a_backfill_that_is_given_up_leaves_no_waiting_rows(a_mill: Make) -> None:
    mill = fed(a_mill(), 4, bad=True)
    begun = backfill(an_amendment(mill, 3), ALL)
    next(begun)
    begun.close()
    ids(cancel(an_amendment(mill)))
    assert places(mill, "quarantine") == [1, 3, 5, 7]


def test_rows_of_rewound_batches_of_a_job_do_not_wait_any_more(a_mill: Make) -> None:
    mill = fed(a_mill(), 4, bad=True)
    begun = backfill(an_amendment(mill, 3), ALL)
    first, _ = next(begun), next(begun)
    begun.close()
    ids(rewind(an_amendment(mill), first.batch_id))
    ids(resume(an_amendment(mill, 3)))
    assert places(mill, "quarantine") == [1, 3, 5, 7]


def test_a_rewind_into_a_complete_job_finds_its_waiting_rows(a_mill: Make) -> None:
    mill = fed(a_mill(), 4, bad=True)
    first, *_ = ids(backfill(an_amendment(mill, 3), ALL))
    tidied(mill, timedelta(days=7))
    ids(rewind(an_amendment(mill), first))
    ids(resume(an_amendment(mill, 30)))
    assert places(mill, "quarantine") == [1, 3, 5, 7]


def test_a_rewind_to_the_switch_keeps_what_was_put_aside_while_it_was_built(a_mill: Make) -> None:
    mill = fed(a_mill(), 4, bad=True)
    mill.feed([an_event(1, "late")])
    run(mill)
    ids(rebuild(an_amendment(mill, 2)))
    before = places(mill, "quarantine"), places(mill, "late")
    switch = position(mill).batch_id
    mill.feed([an_event(100), b"{cut"])
    run(mill)
    ids(rewind(an_amendment(mill), switch))
    assert (places(mill, "quarantine"), places(mill, "late")) == before == ([1, 3, 5, 7], [8])


def test_a_rewind_does_not_pass_over_offsets_that_are_gone(a_mill: Make) -> None:
    mill = fed(a_mill(), 4)
    mill.log.trim("events", 0, 2)
    before = again(mill).published()
    for to in (0, 1):
        with pytest.raises(OffsetsLost, match=f"offsets {to} to 1 are gone"):
            ids(rewind(an_amendment(mill), to))
    assert again(mill).published() == before


def test_neither_a_rewind_nor_a_backfill_passes_over_a_hole_in_the_log(a_mill: Make) -> None:
    mill = fed(a_mill(), 4)
    before = again(mill).published()
    (segment,) = Path(mill.project.settings.log).rglob(f"{1:020}.parquet")
    moved = segment.rename(segment.with_suffix(".away"))
    told = r"sums: topic events partition 0: offset 1 is missing.*nothing was moved"
    for goes_back in (partial(rewind, to=1), partial(preview, to=1), partial(backfill, wanted=ALL)):
        with pytest.raises(OffsetsLost, match=told):
            ids(goes_back(an_amendment(mill)))
    assert again(mill).published() == before
    assert mill.project.ledger("sums").view().open_batch is None
    moved.rename(segment)
    mill.log.delete_topic("events")
    mill.log.create_topic("events", 1)
    mill.feed([an_event(1) for _ in range(9)])
    with pytest.raises(TopicRecreated, match=r"created again.*nothing was moved"):
        ids(rewind(an_amendment(mill), 1))
    assert again(mill).published() == before


def test_a_pipeline_that_began_at_the_end_of_its_log_does_not_go_back_before_that(a_mill: Make) -> None:
    mill = a_mill()
    path = mill.project.folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace('event_time="ts"', 'event_time="ts", start="latest"'))
    mill.feed([an_event(1)])
    assert run(mill).accounts["events"].read == 0
    for second in (50, 100):
        mill.feed([an_event(second)])
        run(mill)
    before = again(mill).published()
    assert [r["n"] for r in before] == [1]
    with pytest.raises(AmendmentError, match="is read from its end on"):
        ids(rewind(an_amendment(mill), 0))
    ids(rebuild(an_amendment(mill)))
    assert again(mill).published() == before


def test_a_rebuild_refuses_to_do_without_what_the_log_lost(a_mill: Make) -> None:
    mill = fed(a_mill(), 4)
    before = again(mill).published()
    mill.log.trim("events", 0, 2)
    with pytest.raises(OffsetsLost, match="events-0: offsets 0 to 1; nothing was moved") as refused:
        ids(rebuild(an_amendment(mill)))
    assert "--accept-loss" in refused.value.fix
    assert again(mill).published() == before
    ids(rebuild(an_amendment(mill), accept_loss=True))
    assert again(mill).published() == before[2:]


@pytest.mark.parametrize("table", ["state", "published"])
def test_a_rebuild_leaves_an_open_batch_that_nothing_can_complete(
    a_mill: Make, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    mill = fed(a_mill(), 4)
    before = again(mill).published()
    mill.feed([an_event(100)])
    died(mill, monkeypatch, "after:audited=raise", lambda: run(mill))
    project = again(mill).project
    log = project.published_uri("sums") if table == "published" else project.table_uri("sums", "state", "sums")
    for path in sorted(type(project.folder)(log).rglob("*.json")):
        path.unlink()
    with pytest.raises(TableDamaged):
        run(mill)
    ids(rebuild(an_amendment(mill)))
    assert [r for r in again(mill).published() if r in before] == before
    assert isinstance(run(mill), NothingToDo)


def test_a_generation_that_another_declaration_began_is_not_gone_on_with(a_mill: Make) -> None:
    mill = fed(a_mill(), 6)
    path = mill.project.folder / "pipelines" / "pipeline.py"
    declared = path.read_text()
    building = rebuild(an_amendment(mill, 2))
    next(building)
    building.close()
    for change in (("!= 'nobody'", "!= 'a'"), ("10 seconds", "30 seconds")):
        path.write_text(declared.replace(*change))
        assert ids(rebuild(an_amendment(mill, 2)))
        events = [e.event for e in again(mill).project.ledger("sums").entries()]
        hashes = {e.plan.logical_hash for e in events if isinstance(e, Planned)}
        assert hashes == {again(mill).project.pipeline("sums").logical_hash}


def test_a_rewind_that_died_half_way_is_completed_after_a_vacuum(a_mill: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = fed(a_mill(), 16, bad=True)
    tidied(mill, timedelta(days=7))
    for number in range(16, 32):
        mill.feed([an_event(17 * number + 1), b"{cut"])
        run(mill)
    died(mill, monkeypatch, "before:quarantine=raise", lambda: ids(rewind(an_amendment(mill), 3)))

    def at_once(table: KeptTable, _: Any, *, keep_versions: Any = (), dry_run: bool = False) -> Any:
        kept = [v for v in keep_versions if table._readable(v)]
        return table._open().vacuum(0, dry_run, False, full=True, keep_versions=kept or None)

    with monkeypatch.context() as patch:
        patch.setattr(KeptTable, "vacuum", lambda *a, **k: len(at_once(*a, **k)))
        tidied(mill)
    ids(rewind(an_amendment(mill), 3))
    assert places(mill, "quarantine") == [1, 3, 5]


def test_a_rewind_forward_audits_nothing(a_mill: Make) -> None:
    mill = fed(a_mill(), 7)
    ids(rewind(an_amendment(mill), 2))
    assert preview(an_amendment(mill), 7).ranges == ()
    [commit] = list(rewind(an_amendment(mill), 7))
    assert (commit.kind, commit.published) == (Kind.REWIND, {})
    assert len(again(mill).published()) == 6


def test_what_somebody_else_left_open_is_completed_and_what_was_asked_for_is_done(
    a_mill: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = fed(a_mill(), 7)
    died(mill, monkeypatch, "after:planned=raise", lambda: ids(rewind(an_amendment(mill), 3)))
    ids(rewind(an_amendment(mill), 5))
    assert position(mill).topics["events"].offsets == {0: 5}
    other = OfOffsets(since={PLACE: 0}, until={PLACE: 1})
    died(mill, monkeypatch, "after:planned=raise", lambda: ids(backfill(an_amendment(mill), other)))
    kinds = [
        (c.kind, c.accounts["events"].read) for c in backfill(an_amendment(mill), OfOffsets(since={PLACE: 3}, until={}))
    ]
    assert [read for kind, read in kinds if kind is Kind.BACKFILL] == [1, 4]


def test_a_backfill_whose_job_was_given_up_ends(a_mill: Make) -> None:
    mill = fed(a_mill(), 7)
    begun = backfill(an_amendment(mill, 2), ALL)
    next(begun)
    ids(cancel(an_amendment(mill)))
    with pytest.raises(AmendmentError, match="was given up"):
        ids(begun)
    assert position(mill).backfill is None


def test_versions_of_the_quarantine_are_there_as_long_as_they_can_be_gone_back_to(
    a_mill: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_commit, "KEEP_VERSIONS", 5)
    mill = fed(a_mill(), 20, bad=True)
    tidied(mill, timedelta(days=7))
    ids(rewind(an_amendment(mill), 2))
    assert places(mill, "quarantine") == [1, 3]


def test_a_late_record_that_the_contract_refuses_by_now_stays_late(a_mill: Make) -> None:
    mill = fed(a_mill(), 4)
    mill.feed([an_event(1, amount=900_000)])
    run(mill)
    contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
    declared = contract.read_text()
    contract.write_text(declared.replace("maximum: 1000000", "maximum: 100"))
    run(mill, from_now=Reason(by=WHO, why="a test"))
    commits = list(repair(an_amendment(mill), SideOutput.LATE, Selection(), mixed=True))
    assert [c.accounts["events"].rejected for c in commits] == [1]
    assert (places(mill, "late"), places(mill, "quarantine")) == ([4], [])
    contract.write_text(declared)
    ids(repair(an_amendment(mill), SideOutput.LATE, Selection(), mixed=True))
    assert places(mill, "late") == []


def test_a_file_of_a_batch_that_is_open_for_hours_stays(a_mill: Callable[..., Mill]) -> None:
    mill = a_mill()
    mill.feed([an_event(1)])
    run(mill)
    now = datetime.now(UTC)
    stray = Path(mill.project.table_uri("sums", "state", "sums")) / "pane_day=2026-01-01" / "being-written.parquet"
    stray.write_bytes(b"of a job that has not committed")
    written = (now - timedelta(hours=3)).timestamp()
    os.utime(stray, (written, written))
    mill.feed([an_event(2)])
    ledger, request = mill.project.ledger("sums"), Request(executor=somebody("slow"), clock=now - timedelta(hours=5))
    plan = next_plan(mill.project.pipeline("sums"), mill.log, ledger.view(), request)
    assert plan is not None
    ledger.append(lambda _: Planned(plan=plan, executor=request.executor, at=request.clock))
    for there in (True, False):
        list(maintain(mill.project, "sums", keep=timedelta(0), now=now))
        assert stray.exists() is there
        run(mill)
