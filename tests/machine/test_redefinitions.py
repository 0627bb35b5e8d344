"""A declaration that changes what numbers mean, through the protocol: refused, decided, killed, rewound and rebuilt."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from machine.conftest import again, an_amendment, ids, run
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, NOW, Mill, an_event
from tidemill.cli.main import app
from tidemill.core.change import foreign_batches
from tidemill.core.errors import AmendmentError, Incompatible
from tidemill.core.identity import semantics
from tidemill.core.plan import planning
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol.events import Cancelled, Planned
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import micros
from tidemill.inspect.earlier import Earlier
from tidemill.ledger.process import this_process
from tidemill.repair.backfill import backfill
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Request

Make = Callable[..., Mill]
MOST = "maximum: 1000000"
SMALL = "maximum: 5"
REASON = Reason(by="ana", why="five is enough")


def declare(mill: Mill, old: str, new: str, file: str = "data_contracts/events.odcs.yaml") -> None:
    path = mill.project.folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def from_now(mill: Mill, who: str = "somebody") -> Any:
    request = Request(executor=this_process(who), clock=datetime.now(UTC), from_now=REASON)
    return run_batch(again(mill).project, "sums", request, session=lambda: NO_SPARK)


def numbers(mill: Mill) -> dict[tuple[str, str], tuple[int, int]]:
    """Count and sum by second and user."""
    rows = again(mill).published()
    return {(f"{r['window_start']:%S}", r["user"]): (r["n"], r["amount"]) for r in rows}


@pytest.fixture
def mill(a_mill: Make) -> Mill:
    """A batch with an event that the other declaration will reject."""
    mill = a_mill()
    mill.feed([an_event(1, amount=3), an_event(2, amount=7), an_event(11, amount=7)])
    run(mill)
    return mill


def test_a_changed_rule_is_refused_until_somebody_decides(mill: Mill) -> None:
    mill.feed([an_event(12, amount=4), an_event(13, amount=8), an_event(25)])
    declare(mill, MOST, SMALL)
    before = again(mill).project.ledger("sums").view()
    with pytest.raises(Incompatible, match=r"events: rules: `amount` <= 1000000, now `amount` <= 5"):
        run(mill)
    assert again(mill).project.ledger("sums").view() == before
    commit = from_now(mill)
    assert commit.batch_id == 2
    assert commit.position.since["sums"].batch_id == 2
    assert commit.accounts["events"].rejected == 1
    assert numbers(mill) == {("00", "a"): (2, 10), ("10", "a"): (2, 11)}
    mill.feed([an_event(26, amount=9), an_event(40)])
    assert run(mill).accounts["events"].rejected == 1
    declare(mill, SMALL, MOST)
    mill.feed([an_event(41, amount=9)])
    assert run(mill).accounts["events"].rejected == 0


def test_a_change_that_cannot_matter_goes_on(mill: Mill) -> None:
    declare(mill, "coalesce(user, '') != 'nobody'", "COALESCE(`user`,'')!='nobody'", "pipelines/pipeline.py")
    declare(mill, 'every="1 minute"', 'every="5 minutes", owner="ana"', "pipelines/pipeline.py")
    mill.feed([an_event(20)])
    assert run(mill).batch_id == 2
    assert run(mill) == NothingToDo()


@pytest.mark.parametrize("place", ["after:planned", "before:published:sums", "before:committed", "after:committed"])
def test_a_decision_survives_its_process(mill: Mill, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    mill.feed([an_event(12, amount=8), an_event(25)])
    declare(mill, MOST, SMALL)
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    with pytest.raises(Injected):
        from_now(mill)
    monkeypatch.delenv(VARIABLE)
    run(mill)
    position = again(mill).project.ledger("sums").view().position
    assert (position.batch_id, position.since["sums"].by, position.since["sums"].batch_id) == (2, "ana", 2)
    assert numbers(mill) == {("00", "a"): (2, 10), ("10", "a"): (1, 7)}


def test_an_open_batch_of_the_old_meaning_is_given_up_while_nobody_could_publish(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill.feed([an_event(12, amount=8), an_event(25)])
    monkeypatch.setenv(VARIABLE, "before:audited=raise")
    with pytest.raises(Injected):
        run(mill)
    monkeypatch.delenv(VARIABLE)
    declare(mill, MOST, SMALL)
    with pytest.raises(Incompatible, match="changed what published numbers mean"):
        run(mill)
    assert from_now(mill).batch_id == 3
    assert numbers(mill) == {("00", "a"): (2, 10), ("10", "a"): (1, 7)}


def test_going_back_behind_a_decision_asks_for_it_again(mill: Mill) -> None:
    mill.feed([an_event(12, amount=8), an_event(25)])
    declare(mill, MOST, SMALL)
    from_now(mill)
    ids(rewind(an_amendment(mill), 1))
    with pytest.raises(Incompatible):
        run(mill)
    declare(mill, SMALL, MOST)
    run(mill)
    assert numbers(mill) == {("00", "a"): (2, 10), ("10", "a"): (2, 15)}


def test_a_rebuild_means_what_is_declared_everywhere(mill: Mill) -> None:
    declare(mill, MOST, SMALL)
    mill.feed([an_event(25)])
    ids(rebuild(an_amendment(mill)))
    assert numbers(mill) == {("00", "a"): (1, 3)}
    assert again(mill).project.ledger("sums").view().position.since is None
    run(mill)


@pytest.mark.parametrize("way", ["a backfill", "a mixture"])
def test_what_was_rejected_before_a_change_comes_back_only_as_somebody_says(mill: Mill, way: str) -> None:
    mill.feed([an_event(12, amount=2_000_000), an_event(25)])
    run(mill)
    declare(mill, MOST, "maximum: 3000000")
    declare(mill, "'nobody'", "'anybody'", "pipelines/pipeline.py")
    from_now(mill)
    with pytest.raises(AmendmentError, match="batch 2 put some of these records aside before batch 3"):
        ids(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert numbers(mill)["10", "a"] == (1, 7)
    if way == "a backfill":
        ids(backfill(an_amendment(mill), OfOffsets(since={}, until={})))
    else:
        ids(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection(), mixed=True))
    assert numbers(mill)["10", "a"] == (2, 2_000_007)
    assert again(mill).own("quarantine") == []


def test_a_rule_that_lets_more_in_needs_no_decision_and_what_it_rejected_is_replayed(mill: Mill) -> None:
    mill.feed([an_event(12, amount=2_000_000), an_event(25)])
    run(mill)
    declare(mill, MOST, "maximum: 3000000")
    ids(repair(an_amendment(mill), SideOutput.QUARANTINE, Selection()))
    assert numbers(mill)["10", "a"] == (2, 2_000_007)


def test_the_command_decides_keeps_and_shows_it(mill: Mill) -> None:
    declare(mill, MOST, SMALL)

    def tidemill(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["--project", str(mill.project.folder), *arguments])

    refused = tidemill("plan", "sums", "--dry-run")
    assert refused.exit_code == 5
    assert "now `amount` <= 5" in refused.stderr
    assert tidemill("run", "sums", "--from-now", "--by", "ana").exit_code == 5
    assert tidemill("run", "sums", "--why", "x").exit_code == 5
    from_now(mill)
    shown = tidemill("status", "sums").stdout
    assert "of sums since batch 2, by ana: five is enough" in shown
    assert json.loads(tidemill("status", "sums", "--json").stdout)["since"]["sums"]["batch_id"] == 2
    told = tidemill("history", "sums").stdout.replace("\n", " ")
    assert "from now on numbers mean something else, by ana" in " ".join(told.split())
    assert tidemill("plan", "sums", "--dry-run").exit_code == 7


def test_a_batch_that_another_version_may_have_published_in_part_is_refused_by_name(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill.feed([an_event(12), an_event(25)])
    monkeypatch.setenv(VARIABLE, "after:published:sums=raise")
    with pytest.raises(Injected):
        run(mill)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(semantics, "SEMANTICS", 7)
    monkeypatch.setattr(foreign_batches, "SEMANTICS", 7)
    before = again(mill).project.ledger("sums").view()
    with pytest.raises(
        Incompatible, match=r"batch 2 may be .* what Tidemill computes \(version 1, now 7\) changed"
    ) as error:
        run(mill)
    assert "with the version of Tidemill that planned it" in error.value.fix
    assert again(mill).project.ledger("sums").view() == before
    monkeypatch.undo()
    monkeypatch.setattr("tidemill.run.batch.Attempt", TinyAttempt)
    assert run(mill).batch_id == 2


def test_a_batch_that_nobody_could_publish_is_planned_anew_by_another_version(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill.feed([an_event(12), an_event(25)])
    monkeypatch.setenv(VARIABLE, "before:audited=raise")
    with pytest.raises(Injected):
        run(mill)
    monkeypatch.delenv(VARIABLE)
    for place in (semantics, foreign_batches, planning):
        monkeypatch.setattr(place, "SEMANTICS", 7)
    assert run(mill).batch_id == 3
    events = [entry.event for entry in again(mill).project.ledger("sums").entries()]
    [cancelled] = [event for event in events if isinstance(event, Cancelled)]
    assert "(version 1, now 7)" in cancelled.reason
    assert [e.plan.semantics for e in events if isinstance(e, Planned)] == [1, 1, 7]


def test_what_was_made_before_is_told_from_the_windows_and_batches_of_now(mill: Mill) -> None:
    mill.feed([an_event(25), an_event(33)])
    run(mill)
    declare(mill, "'nobody'", "'anybody'", "pipelines/pipeline.py")
    mill.feed([an_event(34), an_event(45)])
    from_now(mill)
    amendment = an_amendment(mill)
    view = amendment.ledger.view()
    covers, [sink] = amendment.ledger.past().covers(view.position.slices), amendment.flow.sinks
    earlier = Earlier.of(sink, view.position, covers)
    assert [str(batches) for batches in earlier.batches] == ["batches 1 to 2"]
    seconds = [(w.start - micros(NOW)) // 1_000_000 for w in earlier.windows]
    assert seconds == [0, 20]
    assert [(w.end - 1 - micros(NOW)) // 1_000_000 for w in earlier.windows] == [10, 30]
    assert [c.batch_id for c in earlier.others(covers)] == [3]
    assert Earlier.of(sink, replace(view.position, since=None), covers).batches == ()
