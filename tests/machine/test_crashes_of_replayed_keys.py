"""Every boundary of a repair that folds keys again, failing in every way: run again, nothing shows of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from amend.conftest import done
from machine.conftest import WHO, again, run
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event
from support.replayed_keys import a_mill, widen
from tidemill.core.errors import TidemillError
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.protocol import failpoints
from tidemill.core.repair.side_outputs import Selection
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.repair.repair import repair
from tidemill.run import batch
from tidemill.run.batch import NothingToDo

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


def a_copy(prepared: Path, name: str) -> Mill:
    """A copy in place of the last one of that name."""
    folder = prepared.with_name(name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    return Mill(Project.load(folder), NO_SPARK, "firings")


def replay(mill: Mill) -> None:
    """What a user types."""
    amendment = AmendmentJob(
        project=again(mill).project, pipeline="firings", reason=Reason(by=WHO), identity=WHO, session=lambda: NO_SPARK
    )
    done(repair(amendment, SideOutput.QUARANTINE, Selection(), before=amendment.first_asked))


def caught_up(mill: Mill) -> None:
    while not isinstance(run(mill), NothingToDo):
        pass


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
    before, names = a_copy(prepared, "before").everything(), dict[str, None]()
    unbroken = a_copy(prepared, "unbroken")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "_reach", lambda side, name, _: names.setdefault(name))
        replay(unbroken)
    expected = outcome(unbroken)
    assert {"planned", "scan", "state:firings", "published:firings", "quarantine", "committed"} <= set(names)
    assert all(before[table] != expected["now"][table] for table in ("firings", "quarantine"))
    return list(names), expected


def broken(prepared: Path, monkeypatch: pytest.MonkeyPatch, failure: str, times: int = 1) -> Mill:
    """A copy in which the repair has failed."""
    mill = a_copy(prepared, "broken")
    for _ in range(times):
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "_lost", set())
            patch.setenv(failpoints.VARIABLE, failure)
            with suppress(TidemillError):
                replay(mill)
    return mill


def test_a_failure_is_completed_by_the_same_command(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    names, expected = known
    # Of three kinds, each has a third of the boundaries.
    for name in names[KINDS.index(kind) :: len(KINDS)]:
        mill = broken(prepared, monkeypatch, WAYS[0].format(name))
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.crash
@pytest.mark.parametrize(("way", "times"), [(way, times) for way in WAYS for times in (1, 2)])
def test_whatever_fails_the_same_command_leaves_what_it_would_have(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch, way: str, times: int
) -> None:
    names, expected = known
    for name in names:
        mill = broken(prepared, monkeypatch, way.format(name), times)
        replay(mill)
        assert outcome(mill) == expected, name


@pytest.mark.crash
def test_a_live_run_completes_what_was_begun(
    prepared: Path, known: tuple[list[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    names, expected = known
    for name in names[names.index("planned") :]:
        mill = broken(prepared, monkeypatch, WAYS[0].format(name))
        caught_up(mill)
        replay(mill)
        assert outcome(mill) == expected, name
