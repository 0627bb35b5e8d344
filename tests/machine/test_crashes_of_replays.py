"""Every boundary of a backfill of tables of firings, failing in every way: run again, nothing shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import done
from machine.conftest import WHO, again
from machine.crashing import a_copy, broken, caught_up, fate_of, met
from machine.tiny import TinyAttempt
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event
from support.recovery import paused
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.core.repair.selection import OfOffsets
from tidemill.repair.backfill import backfill, resume
from tidemill.repair.job import AmendmentJob
from tidemill.run import batch

FLOW = "firings"
PLACE = TopicPartition("events", 0)
PART = OfOffsets(since={PLACE: 12}, until={PLACE: 13})
TRIGGER = (
    'trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)), accumulation="accumulating_and_retracting", '
    'timing="timing", index="nth", operation="operation"'
)
KINDS = {
    "TumblingBuffer(CountPolicy(3))": "",
    "SlidingBuffer(CountPolicy(3), order='event_time')": "",
    "Tumbling('10 s')": TRIGGER,
}
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
    """A project with late and rejected records, a filter that has changed, and a contract that lets more in."""
    folder, trigger = tmp_path_factory.mktemp("replays") / "prepared", KINDS[kind]
    more = {"trigger": trigger, "bounds": True, "lateness": "5 s"} if trigger else {}
    mill = firings(folder, NO_SPARK, kind, collect=False, delay="3 s", **more)
    for number in range(6):
        odd = [b"{cut", an_event(number, "c", 2_000_000), an_event(2, "b", number)][number % 3]
        mill.feed([an_event(7 * number + 1), an_event(7 * number, "b", number), odd, an_event(7 * number, "nobody")])
        mill.run()
    path = folder / "pipelines" / "pipeline.py"
    path.write_text(path.read_text().replace("!= 'nobody'", "!= 'z'"))
    contract = folder / "data_contracts" / "events.odcs.yaml"
    contract.write_text(contract.read_text().replace("maximum: 1000000", "maximum: 3000000"))
    mill = again(mill)
    mill.feed([an_event(44, "b", 9)])
    mill.run(from_now=Reason(by=WHO, why="nobody counts"))
    return folder


def replay(mill: Mill) -> None:
    """What a user types; what was begun is completed."""
    amendment = AmendmentJob(
        project=again(mill).project, pipeline=FLOW, reason=Reason(by=WHO), identity=WHO, session=lambda: NO_SPARK
    )
    open_batch = amendment.ledger.view().open_batch
    begun = open_batch is not None and open_batch.plan.job is not None
    done(resume(amendment) if begun else backfill(amendment, PART))


def outcome(mill: Mill) -> dict[str, Any]:
    """All that readers see, now and after the batches that follow."""
    mill = again(mill)
    now = mill.everything()
    mill.feed([an_event(60, "nobody", 5), an_event(4, "c"), b"{cut", an_event(61, "b", 6)])
    caught_up(mill)
    return {"now": now, "then": mill.everything()}


@pytest.fixture(scope="module")
def known(prepared: Path) -> tuple[list[str], dict[str, Any]]:
    """The boundaries, and what is there when nothing fails."""
    before = a_copy(prepared, "before", FLOW).everything()
    unbroken = a_copy(prepared, "unbroken", FLOW)
    names = met(partial(replay, unbroken))
    expected = outcome(unbroken)
    assert {"planned", "state:firings", "audited", "published:firings", "quarantine", "committed"} <= set(names)
    assert all(before[table] != expected["now"][table] for table in ("firings", "quarantine"))
    return names, expected


def shares(kind: str, names: list[str], share: int) -> list[list[str]]:
    """The boundaries that the same command completes, and those that a live run completes: all, or a third of each.

    Each kind has the thirds that the others have not.
    """
    first = list(KINDS).index(kind) % share
    return [names[first::share], names[(first + 1) % share :: share]]


@pytest.mark.parametrize(
    ("way", "times", "share"),
    [
        (WAYS[0], 1, 3),
        pytest.param(WAYS[0], 1, 1, marks=pytest.mark.long),
        *(
            pytest.param(way, times, 1, marks=pytest.mark.crash)
            for way in WAYS
            for times in (1, 2)
            if (way, times) != (WAYS[0], 1)
        ),
    ],
)
def test_whatever_fails_the_same_command_leaves_what_it_would_have(  # noqa: PLR0917
    prepared: Path,
    known: tuple[list[str], dict[str, Any]],
    kind: str,
    way: str,
    times: int,
    share: int,
) -> None:
    names, expected = known
    for name in shares(kind, names, share)[0]:
        mill = a_copy(prepared, "broken", FLOW)
        broken(partial(replay, mill), way.format(name), times)
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_live_run_completes_what_was_begun(
    prepared: Path, known: tuple[list[str], dict[str, Any]], kind: str, share: int
) -> None:
    names, expected = known
    begun = names[names.index("planned") :]
    for name in (name for name in shares(kind, names, share)[1] if name in begun):
        mill = a_copy(prepared, "broken", FLOW)
        broken(partial(replay, mill), WAYS[0].format(name))
        caught_up(mill)
        assert outcome(mill) == expected, name


@pytest.mark.crash
def test_whoever_wakes_up_beside_its_successors_changes_nothing(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, expected = known
    for place in (f"{side}:{name}" for name in names for side in ("before", "after")):
        mill = a_copy(prepared, "zombie", FLOW)
        other = Mill(mill.project, mill.session, mill.name)

        def successors(other: Mill = other) -> None:
            replay(other)
            caught_up(other)

        with monkeypatch.context() as patch:
            happened = paused(patch, place, successors)
            woken = fate_of(partial(replay, mill))
        assert happened == [place]
        assert woken in ("Fenced", "done"), place
        caught_up(mill)
        assert outcome(mill) == expected, place
