"""A table that is new, or that batches left out, through the protocol: no number of it lacks something in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from machine.conftest import again, an_amendment, ids, run
from machine.declaring import declare
from support.projects import NO_SPARK, NOW, Mill, an_event
from tidemill.cli.main import app
from tidemill.core.change.joining_tables import completed
from tidemill.core.errors import AmendmentError, Incompatible
from tidemill.core.history.coverage import united
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import micros
from tidemill.inspect.earlier import Earlier
from tidemill.inspect.lineage import lineage
from tidemill.ledger.process import this_process
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Request

Make = Callable[..., Mill]
REASON = Reason(by="ana", why="others, too")
SUMS, OTHERS = {"sums": "nobody"}, {"others": "nobody"}
LEFT_OUT = "publishes what earlier batches left out"


def from_now(mill: Mill) -> Any:
    request = Request(executor=this_process("somebody"), clock=datetime.now(UTC), from_now=REASON)
    return run_batch(again(mill).project, "sums", request, session=lambda: NO_SPARK)


def numbers(mill: Mill, table: str) -> dict[str, int]:
    """Counts by the second in which a window starts."""
    return {f"{(r['window_start'] - NOW).total_seconds():.0f}": r["n"] for r in again(mill).published(table)}


def publications(mill: Mill, table: str, second: int) -> list[int]:
    """The batches that published a window of a user, as it is explained."""
    found = lineage(again(mill).project, "sums", table, NOW + timedelta(seconds=second), {"user": "a"})
    return [p.batch_id for p in found.publications]


@pytest.fixture
def mill(a_mill: Make) -> Mill:
    """A batch with two events of a window that is open."""
    mill = a_mill()
    mill.feed([an_event(1), an_event(2)])
    run(mill)
    return mill


def test_a_table_that_is_new_has_no_window_that_lacks_something(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15)])
    before = again(mill).project.ledger("sums").view()
    with pytest.raises(Incompatible, match=LEFT_OUT):
        run(mill)
    assert again(mill).project.ledger("sums").view() == before
    since = from_now(mill).position.since
    assert set(since) == {"others"}
    assert (since["others"].batch_id, since["others"].event_time) == (2, micros(NOW) + 2_000_000)
    mill.feed([an_event(4), an_event(16), an_event(60)])
    run(mill)
    assert numbers(mill, "sums") == {"0": 4, "10": 2}
    assert numbers(mill, "others") == {"10": 2}


def test_a_table_that_batches_left_out_comes_back_without_the_windows_that_lack_something(mill: Mill) -> None:
    declare(mill, OTHERS)
    with pytest.raises(Incompatible, match=LEFT_OUT):
        run(mill)
    mill.feed([an_event(3), an_event(15)])
    from_now(mill)
    declare(mill, SUMS)
    mill.feed([an_event(16), an_event(25), an_event(60)])
    with pytest.raises(Incompatible, match="left out by earlier batches, and back"):
        run(mill)
    from_now(mill)
    assert numbers(mill, "others") == {}
    assert numbers(mill, "sums") == {"20": 1}
    assert publications(mill, "sums", 10) == []
    assert publications(mill, "sums", 20) == [3]


def test_a_table_that_no_batch_left_out_comes_back_as_if_it_had_never_left(mill: Mill) -> None:
    declare(mill, OTHERS)
    with pytest.raises(Incompatible):
        run(mill)
    declare(mill, SUMS)
    mill.feed([an_event(3), an_event(30)])
    run(mill)
    assert numbers(mill, "sums") == {"0": 3}


def test_a_table_that_leaves_needs_no_decision(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    from_now(mill)
    declare(mill, SUMS)
    assert run(mill) == NothingToDo()
    mill.feed([an_event(30)])
    assert run(mill).batch_id == 3
    declare(mill, SUMS | OTHERS)
    with pytest.raises(Incompatible, match=LEFT_OUT):
        run(mill)


def test_updates_are_not_published_of_windows_that_lack_something(a_mill: Make) -> None:
    mill = a_mill(trigger="on_update")
    mill.feed([an_event(1), an_event(12)])
    run(mill)
    declare(mill, SUMS | OTHERS, trigger="on_update")
    mill.feed([an_event(13), an_event(22)])
    from_now(mill)
    assert numbers(mill, "sums") == {"0": 1, "10": 2, "20": 1}
    assert numbers(mill, "others") == {"20": 1}


def test_late_records_that_are_let_in_change_no_window_that_lacks_something(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(50), an_event(70)])
    from_now(mill)
    mill.feed([an_event(3), an_event(31)])
    run(mill)
    ids(repair(an_amendment(mill), SideOutput.LATE, Selection()))
    assert numbers(mill, "sums") == {"0": 3, "30": 1, "50": 1}
    assert numbers(mill, "others") == {"30": 1, "50": 1}


@pytest.mark.parametrize("window", ['Sliding("16 seconds", "1 second")', 'Sliding("10 seconds", "5 seconds")'])
def test_sliding_windows_are_whole_or_not_there(a_mill: Make, window: str) -> None:
    mill = a_mill(window=window)
    seconds = [1, 2, 9, 21, 22, 30, 33, 40, 47, 80]
    for number, second in enumerate(seconds):
        if number == 3:
            declare(mill, SUMS | OTHERS, window=window)
            from_now(mill)
        mill.feed([an_event(second)])
        run(mill)
    whole = {start: n for start, n in numbers(mill, "sums").items() if int(start) > 9}
    assert numbers(mill, "others") == whole
    assert len(whole) > 4


@pytest.mark.parametrize("place", ["after:planned", "before:published:others", "before:committed", "after:committed"])
def test_a_decision_about_a_table_survives_its_process(mill: Mill, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15), an_event(25)])
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(Injected):
        from_now(mill)
    monkeypatch.delenv(VARIABLE)
    run(mill)
    since = again(mill).project.ledger("sums").view().position.since["others"]
    assert (since.batch_id, since.event_time, since.by) == (2, micros(NOW) + 2_000_000, "ana")
    assert numbers(mill, "others") == {"10": 1}


def test_a_rebuild_fills_a_new_table_from_the_log(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15)])
    ids(rebuild(an_amendment(mill)))
    assert numbers(mill, "others") == numbers(mill, "sums") == {"0": 3}
    assert again(mill).project.ledger("sums").view().position.since is None
    mill.feed([an_event(30)])
    run(mill)
    assert numbers(mill, "others") == {"0": 3, "10": 1}


def test_a_backfill_fills_a_new_table_with_what_was_before(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15), an_event(30)])
    from_now(mill)
    assert numbers(mill, "others") == {"10": 1}
    ids(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    assert numbers(mill, "others") == numbers(mill, "sums") == {"0": 3, "10": 1}


def whole_after(mill: Mill) -> int | None:
    """The event time after which windows of the table that joined are whole."""
    position = again(mill).project.ledger("sums").view().position
    return position.since["others"].event_time


def test_a_table_lacks_nothing_any_more_once_a_backfill_has_read_all_that_it_lacked(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15), an_event(30)])
    from_now(mill)
    ids(backfill(an_amendment(mill), OfOffsets(since={TopicPartition("events", 0): 2}, until={})))
    assert whole_after(mill) == micros(NOW) + 2_000_000
    job = backfill(an_amendment(mill, most=2), OfOffsets(since={}, until={}))
    next(job)
    assert whole_after(mill) == micros(NOW) + 2_000_000
    ids(job)
    assert whole_after(mill) is None
    amendment = an_amendment(again(mill))
    position = amendment.ledger.view().position
    found = Earlier.of(amendment.flow.sinks[1], position, amendment.ledger.past().covers(position.slices))
    assert (found.batches, found.windows, found.whole_after) == ((), (), None)
    mill.feed([an_event(25), an_event(60)])
    run(mill)
    assert numbers(mill, "others") == numbers(mill, "sums") == {"0": 3, "10": 1, "20": 1, "30": 1}


def test_a_table_lacks_what_the_log_lost_before_a_backfill(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(3), an_event(15), an_event(30)])
    from_now(mill)
    amendment = an_amendment(mill)
    view = amendment.ledger.view()
    covers = amendment.ledger.past().covers(view.position.slices)
    ranges = united(c.ranges for c in covers)
    assert completed(amendment.flow, view.position, amendment.ledger.past(), covers, ranges) == ("others",)
    [topic], [[whole]] = ranges, ranges.values()
    less = {topic: (replace(whole, from_offset=1),)}
    assert completed(amendment.flow, view.position, amendment.ledger.past(), covers, less) is None
    assert (
        completed(amendment.flow, view.position, amendment.ledger.past(), covers[1:], {topic: covers[1].ranges[topic]})
        is None
    )


def test_a_backfill_without_a_table_makes_its_return_a_decision(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    from_now(mill)
    declare(mill, SUMS)
    ids(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    declare(mill, SUMS | OTHERS)
    with pytest.raises(Incompatible, match="left out by earlier batches, and back"):
        run(mill)


def test_a_batch_without_any_table_of_before_makes_all_of_them_decisions(mill: Mill) -> None:
    mill.feed([an_event(3)])
    run(mill)
    declare(mill, OTHERS)
    ids(rewind(an_amendment(mill), 1))
    assert again(mill).project.ledger("sums").view().position.meanings == {}
    for tables in (OTHERS, SUMS):
        declare(mill, tables)
        with pytest.raises(Incompatible, match=LEFT_OUT):
            run(mill)


def test_going_back_behind_a_table_asks_for_it_again(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(15)])
    from_now(mill)
    ids(rewind(an_amendment(mill), 1))
    with pytest.raises(Incompatible, match=LEFT_OUT):
        run(mill)


def test_nothing_goes_back_while_a_table_that_would_keep_its_rows_is_not_declared(mill: Mill) -> None:
    mill.feed([an_event(15)])
    run(mill)
    declare(mill, OTHERS)
    from_now(mill)
    before = again(mill).project.ledger("sums").view()
    with pytest.raises(AmendmentError, match="batches after 1 published sums, which is declared no more") as refused:
        ids(rewind(an_amendment(mill), 1))
    assert "declare sums again until the rewind is done, or move its table away" in (refused.value.fix or "")
    assert again(mill).project.ledger("sums").view() == before
    assert numbers(mill, "sums") == {"0": 2}
    declare(mill, SUMS | OTHERS)
    ids(rewind(an_amendment(mill), 1))
    assert numbers(mill, "sums") == {}


def test_a_table_that_was_moved_away_keeps_nobody_from_going_back(mill: Mill) -> None:
    mill.feed([an_event(15)])
    run(mill)
    declare(mill, OTHERS)
    from_now(mill)
    shutil.rmtree(mill.project.published_uri("sums"))
    ids(rewind(an_amendment(mill), 1))
    assert again(mill).project.ledger("sums").view().position.meanings == {}


def test_what_a_table_lacks_is_left_out_of_the_proof(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)
    mill.feed([an_event(15), an_event(30)])
    from_now(mill)
    amendment = an_amendment(mill)
    position = amendment.ledger.view().position
    covers = amendment.ledger.past().covers(position.slices)
    sums, others = (Earlier.of(sink, position, covers) for sink in amendment.flow.sinks)
    assert (sums.batches, sums.whole_after) == ((), None)
    assert ([str(b) for b in others.batches], others.whole_after) == (["batch 1"], micros(NOW) + 2_000_000)
    assert [c.batch_id for c in others.others(covers)] == [2]


def test_the_commands_say_where_a_table_begins(mill: Mill) -> None:
    declare(mill, SUMS | OTHERS)

    def tidemill(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["--project", str(mill.project.folder), *arguments])

    refused = tidemill("plan", "sums", "--dry-run")
    assert refused.exit_code == 5
    assert "a new table: without what was read up to batch 1" in " ".join(refused.stderr.split())
    shown = " ".join(tidemill("status", "sums").stdout.split())
    assert "next batch is refused: sums: the declaration publishes what earlier batches left out" in shown
    assert "--from-now" in shown
    assert "what earlier batches left out; nothing was moved; see `tidemill status sums`" in tidemill("status").stdout
    assert "left out" in json.loads(tidemill("status", "sums", "--json").stdout)["refused"]["why"]
    doctor = [json.loads(line) for line in tidemill("doctor", "--no-spark", "--json").stdout.splitlines()]
    [found] = [each for each in doctor if each["name"] == "ledger of sums"]
    assert (found["state"], "left out" in found["found"]) == ("problem", True)
    mill.feed([an_event(15), an_event(30)])
    from_now(mill)
    assert json.loads(tidemill("status", "sums", "--json").stdout)["refused"] is None
    again_from = tidemill("rewind", "sums", "--to", "1", "--dry-run")
    told = " ".join(again_from.stdout.split())
    assert "others: the decision of batch 2 about what numbers mean (ana: others, too) is taken back, too" in told
    wanted = ("backfill", "sums", "--windows", "2026-01-01T00:00:00/2026-01-01T00:00:10", "--dry-run")
    assert "others: and where else its records lie" in " ".join(tidemill(*wanted).stdout.split())
    shown = " ".join(tidemill("status", "sums").stdout.split())
    assert "of others since batch 2, in windows that start after 2026-01-01 00:00:02, by ana: others, too" in shown
    since = json.loads(tidemill("status", "sums", "--json").stdout)["since"]
    assert since["others"]["event_time"] == micros(NOW) + 2_000_000
    told = " ".join(tidemill("history", "sums").stdout.split())
    assert "others: a new table: without what was read up to batch 1" in told
    where = ("--table", "others", "--window", "2026-01-01T00:00:00", "--key", "a")
    said = " ".join(tidemill("explain", "sums", *where).stdout.split())
    assert "earlier batches left the table out" in said
    assert "this one may lack records" in said
