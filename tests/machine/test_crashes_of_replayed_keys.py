"""Every boundary of a repair that folds keys again, failing in every way: run again, nothing shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import done
from machine.conftest import WHO, again
from machine.crashing import a_copy, broken, caught_up, met
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event
from support.replayed_keys import a_mill, widen
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.repair.side_outputs import Selection
from tidemill.repair.job import AmendmentJob
from tidemill.repair.repair import repair
from tidemill.run import batch

FLOW = "firings"
KINDS = ["count", "retracting", "replacing"]
WAYS = ["after:{}=raise", "before:{}=raise", "{}=lose"]


@pytest.fixture(scope="module", autouse=True)
def _tiny() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        yield


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of firings in turn."""
    return str(request.param)


@pytest.fixture(scope="module")
def prepared(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with rejected records of some keys, of which one stays rejected, and a late one."""
    folder = tmp_path_factory.mktemp("replayed_keys") / "prepared"
    mill = a_mill(folder, NO_SPARK, kind, collect=False)
    for number in range(6):
        odd = [b"{cut", an_event(6 * number, "c", 2_000_000), an_event(6 * number, "b", 2_000_001)][number % 3]
        mill.feed([an_event(6 * number + 1), odd, an_event(6 * number + 2, "b", number)])
        mill.feed([an_event(6 * number + 3, "c", number)], partition=1)
        mill.run()
    mill.feed([an_event(0, "b", 2_000_002), an_event(40, "b")])
    mill.run()
    widen(mill)
    return folder


def replay(mill: Mill) -> None:
    """What a user types."""
    amendment = AmendmentJob(
        project=again(mill).project, pipeline=FLOW, reason=Reason(by=WHO), identity=WHO, session=lambda: NO_SPARK
    )
    done(repair(amendment, SideOutput.QUARANTINE, Selection(), before=amendment.first_asked))


def outcome(mill: Mill) -> dict[str, Any]:
    """All that readers see, now and after the batches that follow."""
    mill = again(mill)
    now = mill.everything()
    mill.feed([an_event(60, "b", 5), an_event(61, "c"), an_event(62, "b", 6), an_event(63)])
    mill.feed([an_event(64, "c"), an_event(65, "c")], partition=1)
    caught_up(mill)
    return {"now": now, "then": mill.everything()}


@pytest.fixture(scope="module")
def known(prepared: Path) -> tuple[list[str], dict[str, Any]]:
    """The boundaries, and what is there when nothing fails."""
    before, unbroken = a_copy(prepared, "before", FLOW).everything(), a_copy(prepared, "unbroken", FLOW)
    names = met(partial(replay, unbroken))
    expected = outcome(unbroken)
    assert {"planned", "scan", "state:firings", "published:firings", "quarantine", "committed"} <= set(names)
    assert all(before[table] != expected["now"][table] for table in ("firings", "quarantine"))
    return names, expected


@pytest.mark.parametrize("share", [6, pytest.param(3, marks=pytest.mark.long)])
def test_a_failure_is_completed_by_the_same_command(
    prepared: Path, known: tuple[list[str], dict[str, Any]], kind: str, share: int
) -> None:
    names, expected = known
    # Of three kinds, each has a third of the boundaries, or half of that.
    for name in names[KINDS.index(kind) :: share]:
        mill = a_copy(prepared, "broken", FLOW)
        broken(partial(replay, mill), WAYS[0].format(name))
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.crash
@pytest.mark.parametrize(("way", "times"), [(way, times) for way in WAYS for times in (1, 2)])
def test_whatever_fails_the_same_command_leaves_what_it_would_have(
    prepared: Path, known: tuple[list[str], dict[str, Any]], way: str, times: int
) -> None:
    names, expected = known
    for name in names:
        mill = a_copy(prepared, "broken", FLOW)
        broken(partial(replay, mill), way.format(name), times)
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.crash
def test_a_live_run_completes_what_was_begun(prepared: Path, known: tuple[list[str], dict[str, Any]]) -> None:
    names, expected = known
    for name in names[names.index("planned") :]:
        mill = a_copy(prepared, "broken", FLOW)
        broken(partial(replay, mill), WAYS[0].format(name))
        caught_up(mill)
        replay(mill)
        assert outcome(mill) == expected, name
