"""The ledger on a real Delta table: one order of events that all writers agree on."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler

from support.builders import NOW, a_commit, a_plan, an_executor
from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import CommitUnknown, Fenced, LedgerDamaged
from tidemill.core.plan.position import Position
from tidemill.core.protocol.events import Audited, Claimed, Event, Planned
from tidemill.core.protocol.view import View
from tidemill.ledger.ledger import Ledger
from tidemill.ledger.rows import as_json


def a_batch(position: Position, batch_id: int) -> list[Event]:
    plan = a_plan(batch_id=batch_id, position=position, until={0: 10 * batch_id})
    audited = Audited(batch_id=batch_id, attempt=1, verdict=Verdict(), logical_hash="hash", at=NOW)
    return [Planned(plan=plan, executor=an_executor(), at=NOW), audited, a_commit(plan)]


def batches(ledger: Ledger, count: int, *, after: int = 0) -> View:
    view = ledger.view()
    for batch_id in range(after + 1, after + count + 1):
        for event in a_batch(view.position, batch_id):
            view = ledger.append(always(event))
    return view


def always(event: Event) -> Callable[[View], Event]:
    return lambda _: event


def a_ledger(folder: Path) -> Ledger:
    return Ledger(str(folder / "ledger"), "p")


def test_there_is_nothing_before_the_first_event(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    assert not ledger.exists
    assert ledger.view() == View()
    assert ledger.entries() == ()


def test_another_instance_sees_the_same_after_every_event(tmp_path: Path) -> None:
    ledger, reader = a_ledger(tmp_path), a_ledger(tmp_path)
    view = View()
    for batch_id in range(1, 6):
        for event in a_batch(view.position, batch_id):
            view = ledger.append(always(event))
            assert reader.view() == view
            assert a_ledger(tmp_path).view() == view
    assert view.position.topics["t"].offsets == {0: 50}


def test_events_are_numbered_without_a_hole_and_read_back_as_written(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    batches(ledger, 3)
    entries = ledger.entries()
    assert [e.sequence for e in entries] == list(range(1, 10))
    assert [e.event for e in entries[:3]] == a_batch(Position(), 1)
    assert [e.sequence for e in ledger.entries(last=2)] == [8, 9]
    assert json.loads(json.dumps(as_json(entries[0])))["event"] == "planned"


def test_of_two_writers_at_one_version_only_one_appends_and_the_other_looks_again(tmp_path: Path) -> None:
    mine, other = a_ledger(tmp_path), a_ledger(tmp_path)
    mine.append(always(a_batch(Position(), 1)[0]))
    seen: list[int] = []

    def take_over(view: View, who: str) -> Event:
        assert view.open_batch is not None
        seen.append(view.open_batch.attempt)
        return Claimed(batch_id=1, attempt=view.open_batch.attempt + 1, executor=an_executor(who), at=NOW)

    assert other.view() == mine.view()
    mine.append(partial(take_over, who="me"))
    assert other.append(partial(take_over, who="other")) == a_ledger(tmp_path).view()
    assert seen == [1, 1, 2]
    assert len(a_ledger(tmp_path).entries()) == 3
    with pytest.raises(Fenced):
        mine.append(always(a_batch(Position(), 1)[1]))


def test_whoever_makes_the_ledger_may_find_events_of_others_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = a_ledger(tmp_path), a_ledger(tmp_path)
    create, event = DeltaTable.create, a_batch(Position(), 1)[0]

    def and_be_overtaken(*how: Any, **more: Any) -> Any:
        made = create(*how, **more)
        other.append(always(event))
        return made

    def decide(view: View) -> Event:
        if view.open_batch is not None:
            raise Fenced("somebody else has planned")
        return event

    monkeypatch.setattr(DeltaTable, "create", and_be_overtaken)
    with pytest.raises(Fenced, match="somebody else"):
        mine.append(decide)
    assert [entry.sequence for entry in a_ledger(tmp_path).entries()] == [1]


def test_a_forbidden_event_is_never_written(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    plan, _, commit = a_batch(Position(), 1)
    ledger.append(always(plan))
    with pytest.raises(Fenced, match="no verdict"):
        ledger.append(always(commit))
    assert len(a_ledger(tmp_path).entries()) == 1


class Unlucky(Ledger):
    """The storage answers with an error: before the commit landed, or after."""

    lands = True

    def _commit(self, *how: Any) -> None:
        if self.lands:
            super()._commit(*how)
        raise DeltaError("connection reset")


def test_an_event_whose_answer_was_lost_is_found_and_not_written_twice(tmp_path: Path) -> None:
    ledger = Unlucky(str(tmp_path / "ledger"), "p")
    view = batches(ledger, 2)
    assert a_ledger(tmp_path).view() == view
    assert len(ledger.entries()) == 6


def test_who_is_overtaken_while_an_answer_is_lost_is_fenced_at_the_next_append(tmp_path: Path) -> None:
    class Overtaken(Ledger):
        overtake: Callable[[], object] | None = None

        def _commit(self, *how: Any) -> None:
            super()._commit(*how)
            overtake, self.overtake = self.overtake, None
            if overtake:
                overtake()
                raise OSError("connection reset")

    ledger = Overtaken(str(tmp_path / "ledger"), "p")
    plan, audited, commit = a_batch(Position(), 1)
    claim = Claimed(batch_id=1, attempt=2, executor=an_executor("the faster"), at=NOW)
    ledger.append(always(plan))
    ledger.overtake = lambda: a_ledger(tmp_path).append(always(claim))
    ledger.append(always(audited))
    with pytest.raises(Fenced, match="attempt 1 at batch 1 is fenced"):
        ledger.append(always(commit))
    assert [e.sequence for e in a_ledger(tmp_path).entries()] == [1, 2, 3]


def test_a_look_at_all_events_does_not_hide_one_from_the_next_append(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    plan, audited, _ = a_batch(Position(), 1)
    ledger.append(always(plan))
    a_ledger(tmp_path).append(always(Claimed(batch_id=1, attempt=2, executor=an_executor("the faster"), at=NOW)))
    assert len(ledger.entries()) == 2
    with pytest.raises(Fenced, match="attempt 1 at batch 1 is fenced"):
        ledger.append(always(audited))


def test_an_event_that_did_not_land_is_reported_and_may_be_tried_again(tmp_path: Path) -> None:
    batches(a_ledger(tmp_path), 1)
    ledger = Unlucky(str(tmp_path / "ledger"), "p")
    ledger.lands = False
    view = ledger.view()
    with pytest.raises(CommitUnknown, match="connection reset"):
        ledger.append(always(a_batch(view.position, 2)[0]))
    assert a_ledger(tmp_path).view() == view
    batches(a_ledger(tmp_path), 1, after=1)


def test_an_older_copy_put_back_is_noticed_by_whoever_saw_more(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    batches(ledger, 1)
    shutil.copytree(tmp_path / "ledger", tmp_path / "copy")
    batches(ledger, 1, after=1)
    shutil.rmtree(tmp_path / "ledger")
    shutil.copytree(tmp_path / "copy", tmp_path / "ledger")
    with pytest.raises(LedgerDamaged, match="older copy"):
        ledger.view()


def test_a_lost_event_is_noticed(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    batches(ledger, 2)
    DeltaTable(str(tmp_path / "ledger")).delete("sequence = 5")
    with pytest.raises(LedgerDamaged, match="expected events"):
        a_ledger(tmp_path).view()


def test_an_event_of_a_newer_format_is_not_guessed_at(tmp_path: Path) -> None:
    batches(a_ledger(tmp_path), 1)
    DeltaTable(str(tmp_path / "ledger")).update({"format_version": "99"}, predicate="sequence = 3")
    with pytest.raises(LedgerDamaged, match=r"format 99, expected 1[\s\S]*upgrade"):
        a_ledger(tmp_path).view()


def test_folding_keeps_every_event_and_few_files(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    view = batches(ledger, 40)
    before = ledger.entries()
    ledger.keep_short(keep=10)
    table = DeltaTable(str(tmp_path / "ledger"))
    assert len(table.file_uris()) <= 34
    assert len(list((tmp_path / "ledger" / "_delta_log").glob("*.json"))) <= 31
    assert a_ledger(tmp_path).entries() == before
    assert a_ledger(tmp_path).view() == ledger.view() == view
    assert batches(ledger, 1, after=40) == a_ledger(tmp_path).view()


def test_another_writer_goes_on_while_events_are_folded(tmp_path: Path) -> None:
    ledger, other = a_ledger(tmp_path), a_ledger(tmp_path)
    batches(ledger, 30)
    other.view()
    ledger.keep_short(keep=500)
    batches(other, 1, after=30)
    assert [e.sequence for e in ledger.entries()] == list(range(1, 94))


def test_files_that_were_folded_are_deleted_after_a_while_and_no_event_with_them(tmp_path: Path) -> None:
    ledger, other = a_ledger(tmp_path), a_ledger(tmp_path)
    batches(ledger, 30)
    other.view()
    ledger.keep_short(keep=20)
    # A checkpoint forgets what was removed: nothing but the age of a file tells when it was.
    batches(ledger, 10, after=30)
    assert ledger.sweep(timedelta(hours=1)) == 0
    for file in (tmp_path / "ledger").glob("*.parquet"):
        os.utime(file, (0, 0))
    gone = ledger.sweep(timedelta(hours=1), dry_run=True)
    assert gone == ledger.sweep(timedelta(hours=1)) > 50
    batches(other, 1, after=40)
    for each in (ledger, other, a_ledger(tmp_path)):
        assert [e.sequence for e in each.entries()] == list(range(1, 124))


def test_storage_is_asked_in_the_readers_own_thread_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches(Ledger(str(tmp_path / "ledger"), "p"), 3)
    asked = []
    for name in ("open_input_file", "open_input_stream", "get_file_info"):
        original = getattr(DeltaStorageHandler, name)

        def spied(*arguments: Any, original: Any = original) -> Any:
            asked.append(threading.current_thread())
            return original(*arguments)

        monkeypatch.setattr(DeltaStorageHandler, name, spied)
    assert len(Ledger(str(tmp_path / "ledger"), "p").entries()) == 9
    assert asked
    assert set(asked) == {threading.main_thread()}
