"""Every boundary of a backfill of tables of firings, failing in every way: run again, nothing shows of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import done
from machine.conftest import WHO, again, run
from support.firings import firings
from support.projects import NO_SPARK, Mill, an_event
from support.recovery import paused
from tidemill.core.errors import TidemillError
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol import failpoints
from tidemill.core.repair.selection import OfOffsets
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, resume
from tidemill.repair.job import AmendmentJob
from tidemill.run.batch import NothingToDo

PLACE = TopicPartition("events", 0)
PART = OfOffsets(since={PLACE: 12}, until={PLACE: 13})
TRIGGER = (
    'trigger=AfterWatermark(early=AfterCount(2), late=AfterCount(1)), accumulation="accumulating_and_retracting", '
    'timing="timing", index="nth", operation="operation"'
)
KINDS = {"TumblingBuffer(CountPolicy(3))": "", "Tumbling('10 s')": TRIGGER}
WAYS = [
    "after:{}=raise",
    pytest.param("before:{}=raise", marks=pytest.mark.crash),
    pytest.param("{}=lose", marks=pytest.mark.crash),
]


@pytest.fixture(params=KINDS)
def prepared(request: pytest.FixtureRequest, tmp_path: Path, tiny: None) -> Path:
    """A project with late and rejected records, a filter that has changed, and a contract that lets more in."""
    folder, trigger = tmp_path / "prepared", KINDS[request.param]
    more = {"trigger": trigger, "bounds": True, "lateness": "5 s"} if trigger else {}
    mill = firings(folder, NO_SPARK, request.param, collect=False, delay="3 s", **more)
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


def a_copy(prepared: Path, name: str) -> Mill:
    """A copy in place of the last one of that name."""
    folder = prepared.with_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    return Mill(Project.load(folder), NO_SPARK, "firings")


def replay(mill: Mill) -> None:
    """What a user types; what was begun is completed."""
    amendment = AmendmentJob(
        project=again(mill).project, pipeline="firings", reason=Reason(by=WHO), identity=WHO, session=lambda: NO_SPARK
    )
    open_batch = amendment.ledger.view().open_batch
    begun = open_batch is not None and open_batch.plan.job is not None
    done(resume(amendment) if begun else backfill(amendment, PART))


def caught_up(mill: Mill) -> None:
    while not isinstance(run(mill), NothingToDo):
        pass


def outcome(mill: Mill) -> dict[str, Any]:
    """All that readers see, now and after the batches that follow."""
    mill = again(mill)
    now = mill.everything()
    mill.feed([an_event(60, "nobody", 5), an_event(4, "c"), b"{cut", an_event(61, "b", 6)])
    caught_up(mill)
    return {"now": now, "then": mill.everything()}


def met(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The boundaries that it comes to, each once."""
    names: dict[str, None] = {}
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_reach", lambda side, name, _: names.setdefault(name))
        replay(mill)
    return list(names)


@pytest.fixture
def known(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], dict[str, Any]]:
    """The boundaries, and what is there when nothing fails."""
    before = a_copy(prepared, "before").everything()
    unbroken = a_copy(prepared, "unbroken")
    names = met(unbroken, monkeypatch)
    expected = outcome(unbroken)
    assert {"planned", "state:firings", "audited", "published:firings", "quarantine", "committed"} <= set(names)
    assert all(before[table] != expected["now"][table] for table in ("firings", "quarantine"))
    return names, expected


def broken(prepared: Path, monkeypatch: pytest.MonkeyPatch, failure: str, times: int = 1) -> Mill:
    """A copy in which the backfill has failed."""
    mill = a_copy(prepared, "broken")
    for _ in range(times):
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, failure)
            with suppress(TidemillError):
                replay(mill)
    return mill


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.crash)])
@pytest.mark.parametrize("way", WAYS)
def test_whatever_fails_the_same_command_leaves_what_it_would_have(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, way: str, times: int
) -> None:
    names, expected = known
    for name in names:
        mill = broken(prepared, monkeypatch, way.format(name), times)
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.parametrize("way", WAYS[:1])
def test_a_live_run_completes_what_was_begun(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    names, expected = known
    for name in names[names.index("planned") :]:
        mill = broken(prepared, monkeypatch, way.format(name))
        caught_up(mill)
        assert outcome(mill) == expected, name


def fate_of(act: Callable[[], None]) -> str:
    try:
        act()
    except TidemillError as error:
        return type(error).__name__
    return "done"


@pytest.mark.crash
def test_whoever_wakes_up_beside_its_successors_changes_nothing(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, expected = known
    for place in (f"{side}:{name}" for name in names for side in ("before", "after")):
        mill = a_copy(prepared, "zombie")
        other = Mill(mill.project, mill.session, mill.name)

        def successors(other: Mill = other) -> None:
            replay(other)
            caught_up(other)

        with monkeypatch.context() as patch:
            happened = paused(patch, place, successors)
            woken = fate_of(lambda mill=mill: replay(mill))  # type: ignore[misc]
        assert happened == [place]
        assert woken in ("Fenced", "done"), place
        caught_up(mill)
        assert outcome(mill) == expected, place
