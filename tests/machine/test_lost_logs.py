"""A log that lost records for good: the error names the ways on, and they work."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from machine.conftest import WHO, again, an_amendment, run
from support.projects import Mill, an_event
from tidemill.core.errors import LogError, OffsetsLost
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.events import Planned
from tidemill.ledger.process import this_process
from tidemill.repair.rebuild import rebuild
from tidemill.run.batch import NothingToDo
from tidemill.run.claiming import Request, next_plan

Damage = Callable[[Mill], None]


def segments(mill: Mill) -> list[Path]:
    """Four files of two records each; the first two are committed."""
    return sorted(Path(mill.project.settings.log).glob("events/*/0/*.parquet"))


def lose_the_end(mill: Mill) -> None:
    for segment in segments(mill)[1:]:
        segment.unlink()


def trim(mill: Mill) -> None:
    mill.log.trim("events", 0, 5)


def create_again(mill: Mill) -> None:
    mill.log.delete_topic("events")
    mill.log.create_topic("events", partitions=1)
    mill.feed([an_event(100), an_event(120), an_event(140), an_event(160), an_event(180)])


def lose_a_middle(mill: Mill) -> None:
    segments(mill)[2].unlink()


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """Two batches, and records that wait for the next."""
    found = a_mill()
    for number in range(4):
        found.feed([an_event(20 * number), an_event(20 * number + 10)])
        if number < 2:
            run(found)
    return found


def plan_and_die(mill: Mill) -> None:
    ledger, who = mill.project.ledger("sums"), this_process(WHO)
    request = Request(executor=who, clock=datetime.now(UTC), limit=ReadLimit())
    plan = next_plan(mill.project.pipeline("sums"), mill.log, ledger.view(), request)
    assert plan is not None
    ledger.append(lambda _: Planned(plan=plan, executor=who, at=request.clock))


@pytest.mark.parametrize("opened", [False, True], ids=["between batches", "with an open batch"])
@pytest.mark.parametrize("damage", [lose_the_end, trim, create_again])
def test_without_a_copy_the_tables_are_built_from_what_is_left(mill: Mill, damage: Damage, opened: bool) -> None:
    if opened:
        plan_and_die(mill)
    damage(mill)
    before = mill.published("sums")
    with pytest.raises(LogError) as refused:
        run(mill)
    fix = refused.value.fix
    assert "if there is no copy" in fix
    if damage is trim and not opened:
        assert 'on_loss="skip"' in fix
    else:
        pipeline = "PIPELINE" if opened else "sums"
        assert f"`tidemill rebuild {pipeline} --accept-loss`" in fix
    with pytest.raises(OffsetsLost):
        list(rebuild(an_amendment(mill)))
    assert again(mill).published("sums") == before
    assert list(rebuild(an_amendment(mill), accept_loss=True))
    assert isinstance(run(mill), NothingToDo)
    mill.feed([an_event(400)])
    run(mill)
    starts = [
        row["window_start"].timestamp() - datetime(2026, 1, 1, tzinfo=UTC).timestamp()
        for row in again(mill).published("sums")
    ]
    assert starts == {lose_the_end: [0, 10], trim: [50, 60, 70], create_again: [100, 120, 140, 160, 180]}[damage]


def test_what_is_before_a_hole_is_given_up_and_the_rest_read(mill: Mill) -> None:
    lose_a_middle(mill)
    with pytest.raises(OffsetsLost) as refused:
        run(mill)
    assert "tidemill log trim events --partition 0 --before 6" in refused.value.fix
    mill.log.trim("events", 0, 6)
    assert list(rebuild(an_amendment(mill), accept_loss=True))
    assert isinstance(run(mill), NothingToDo)
