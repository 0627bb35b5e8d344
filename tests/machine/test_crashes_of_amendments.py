"""Every boundary of every kind of batch that goes back, failing in every way: run again, nothing shows of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from machine.conftest import again, an_amendment, ids
from machine.crashing import a_copy, broken, caught_up, fate_of, met
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, an_event, rows_of, sums, without_own
from support.recovery import paused
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import boundaries_beside, boundaries_of
from tidemill.core.repair.selection import OfOffsets
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.repair.state_compaction import Folding
from tidemill.maintain.state_compaction import fold
from tidemill.project.project import Project
from tidemill.repair.backfill import backfill, resume
from tidemill.repair.job import AmendmentJob
from tidemill.repair.rebuild import rebuild
from tidemill.repair.repair import repair
from tidemill.repair.rewind import rewind
from tidemill.run import batch

pytestmark = pytest.mark.usefixtures("tiny")

BATCHES = 7
ALL = OfOffsets(since={}, until={})
WINDOWS = ['Tumbling("10 seconds")', pytest.param('Session("3 seconds")', marks=pytest.mark.crash)]


def backfilled(amendment: AmendmentJob) -> Iterator[Committed]:
    """Everything again, in several batches; what was begun is completed."""
    view = amendment.ledger.view()
    begun = view.position.backfill or (view.open_batch is not None and view.open_batch.plan.job)
    return resume(amendment) if begun else backfill(amendment, ALL)


KINDS: dict[str, Callable[[AmendmentJob], Iterator[Committed]]] = {
    "late": lambda amendment: repair(amendment, SideOutput.LATE, Selection()),
    "quarantine": lambda amendment: repair(amendment, SideOutput.QUARANTINE, Selection()),
    "backfill": backfilled,
    "rewind": lambda amendment: rewind(amendment, 3),
    "fold": lambda amendment: fold(amendment, Folding(group=3, overlap=1.0, groups=1)),
    "rebuild": rebuild,
}
WAYS = [
    "after:{}=raise",
    pytest.param("before:{}=raise", marks=pytest.mark.crash),
    pytest.param("{}=lose", marks=pytest.mark.crash),
]


@pytest.fixture(scope="module", params=WINDOWS)
def prepared(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A project with some batches, late and rejected records; each test has copies of it."""
    folder = tmp_path_factory.mktemp("amendments") / "prepared"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        mill = sums(folder, NO_SPARK, window=request.param, lateness="10 s")
        for number in range(BATCHES):
            odd = b"{cut" if number % 2 else an_event(2, "b", number)
            mill.feed([an_event(7 * number + 1), an_event(7 * number, "b"), odd])
            mill.run()
    return folder


@pytest.fixture(scope="module")
def met_by(prepared: Path) -> dict[str, list[str]]:
    """The boundaries that each kind comes to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        return {kind: met(partial(done, a_copy(prepared, kind), kind)) for kind in KINDS}


@pytest.fixture(scope="module")
def spread(met_by: dict[str, list[str]]) -> dict[str, list[str]]:
    """Every boundary with one of the kinds that come to it, so that each kind has about as many."""
    given: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in dict.fromkeys(name for names in met_by.values() for name in names):
        given[min((kind for kind in KINDS if name in met_by[kind]), key=lambda kind: len(given[kind]))].append(name)
    assert all(given.values())
    return given


def done(mill: Mill, kind: str) -> None:
    """What a user types."""
    ids(KINDS[kind](an_amendment(mill, most=5)))


def outcome(mill: Mill) -> dict[str, Any]:
    """All that readers see, now and after the batches that follow."""
    mill = again(mill)
    now = mill.everything()
    corrections = without_own(rows_of(mill.project.table_uri("sums", "corrections")))
    mill.feed([an_event(60), an_event(4, "c"), b"{cut"])
    caught_up(mill)
    return {"now": now, "corrections": corrections, "then": mill.everything()}


def test_no_boundary_of_what_goes_back_is_left_out(prepared: Path, met_by: dict[str, list[str]]) -> None:
    found = {name for names in met_by.values() for name in names}
    flow = Project.load(prepared).pipeline("sums")
    beside = {b.name for b in boundaries_beside(flow)}
    assert found <= beside | {b.name for b in boundaries_of(flow)}
    others = {"dropped", "forgotten", "removed:sums", "waiting:late"}
    assert beside - found == {"maintenance", "decided", "renamed", "adopted", *others}


@pytest.mark.crash
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_killed_the_same_command_leaves_what_it_would_have(prepared: Path, kind: str) -> None:
    unbroken = a_copy(prepared, "unbroken")
    names = met(partial(done, unbroken, kind))
    expected = outcome(unbroken)
    flow = unbroken.project.pipeline("sums")
    writes = [b.name for b in (*boundaries_of(flow), *boundaries_beside(flow)) if b.writes and b.name in names]
    for number, place in enumerate(f"after:{name}" for name in writes):
        mill = a_copy(prepared, f"killed-{number}")
        environ = {**os.environ, failpoints.VARIABLE: f"{place}=kill", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "machine.killed", str(mill.project.folder), kind]
        assert subprocess.run(command, env=environ, check=False).returncode == -signal.SIGKILL, place
        done(mill, kind)
        assert outcome(mill) == expected, place
        shutil.rmtree(mill.project.folder)


@pytest.mark.parametrize("kind", KINDS)
def test_each_boundary_fails_in_one_kind_and_the_same_command_leaves_what_it_would_have(
    prepared: Path, spread: dict[str, list[str]], kind: str
) -> None:
    unbroken = a_copy(prepared, "unbroken")
    done(unbroken, kind)
    try_each(spread[kind], prepared, outcome(unbroken), kind)


@pytest.mark.parametrize("again", [0, pytest.param(1, marks=pytest.mark.crash)])
@pytest.mark.parametrize("way", [pytest.param(WAYS[0], marks=pytest.mark.long), *WAYS[1:]])
@pytest.mark.parametrize("kind", [k if k != "quarantine" else pytest.param(k, marks=pytest.mark.crash) for k in KINDS])
def test_whatever_fails_the_same_command_leaves_what_it_would_have(
    prepared: Path, kind: str, way: str, again: int
) -> None:
    unbroken = a_copy(prepared, "unbroken")
    names = met(partial(done, unbroken, kind))
    assert "planned" in names
    assert "committed" in names
    try_each(names, prepared, outcome(unbroken), kind, way, again)


def try_each(  # noqa: PLR0917
    names: Sequence[str],
    prepared: Path,
    expected: dict[str, Any],
    kind: str,
    way: str = "after:{}=raise",
    again: int = 0,
) -> None:
    """Let the command fail at each of the boundaries, type it again, and see that nothing shows of it."""
    for name in names:
        mill = a_copy(prepared, "broken")
        failure = way.format(name)
        broken(partial(done, mill, kind), failure, 1 + again)
        done(mill, kind)
        assert outcome(mill) == expected, failure
        shutil.rmtree(mill.project.folder)


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.long if k == "rewind" else pytest.mark.crash) for k in KINDS]
)
def test_whoever_wakes_up_beside_its_successors_changes_nothing(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    names = met(partial(done, a_copy(prepared, "met"), kind))
    unbroken = a_copy(prepared, "unbroken")
    done(unbroken, kind)
    caught_up(unbroken)
    expected = outcome(unbroken)
    for number, place in enumerate(f"{side}:{name}" for name in names for side in ("before", "after")):
        mill = a_copy(prepared, f"zombie-{number}")
        other = Mill(mill.project, mill.session, mill.name)

        def successors(other: Mill = other) -> None:
            done(other, kind)
            caught_up(other)

        with monkeypatch.context() as patch:
            happened = paused(patch, place, successors)
            woken = fate_of(partial(done, mill, kind))
        assert happened == [place]
        assert woken in ("Fenced", "done"), place
        caught_up(mill)
        assert outcome(mill) == expected, place
        shutil.rmtree(mill.project.folder)


@pytest.mark.parametrize("kind", ["late", "quarantine"])
def test_a_repair_whose_records_somebody_takes_between_its_looks_ends_well(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mill, unbroken = a_copy(prepared, "beside"), a_copy(prepared, "unbroken")
    done(unbroken, kind)
    with monkeypatch.context() as patch:
        happened = paused(patch, "after:side_tables", lambda: done(Mill(mill.project, NO_SPARK, "sums"), kind))
        assert fate_of(partial(done, mill, kind)) in ("Fenced", "done")
    assert happened
    done(mill, kind)
    assert outcome(mill) == outcome(unbroken)
