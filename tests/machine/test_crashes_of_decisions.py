"""Every boundary of what people decide, and of the batches that follow, failing in every way: nothing shows of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from machine.conftest import again
from machine.crashing import a_copy, broken, caught_up, met
from machine.decisions import DECISIONS, show
from machine.test_crashes_of_amendments import WAYS
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.failpoints import boundaries_beside, boundaries_of
from tidemill.project.project import Project
from tidemill.tables.owner import OWNER

BATCHES = 4
LONG, CRASH = pytest.mark.long, pytest.mark.crash


@pytest.fixture
def prepared(tmp_path: Path, tiny: None) -> Path:
    """A project with some batches of two partitions, late and rejected records."""
    mill = sums(tmp_path / "prepared", NO_SPARK, lateness="10 s", partitions=2)
    for number in range(BATCHES):
        odd = b"{cut" if number % 2 else an_event(2, "b", number)
        mill.feed([an_event(9 * number + 1), an_event(9 * number, "b"), odd])
        mill.feed([an_event(9 * number + 2, "b")], partition=1)
        mill.run()
    return tmp_path / "prepared"


def begun(prepared: Path, name: str, kind: str) -> Mill:
    """A copy in which it can be decided."""
    mill = a_copy(prepared, name)
    DECISIONS[kind].begin(mill)
    return again(mill)


def outcome(mill: Mill, kind: str) -> dict[str, Any]:
    """All that readers see, now and after the batches that follow, and whose the table is."""
    folder = mill.project.folder / DECISIONS[kind].folder
    found = Mill(Project.load(folder), NO_SPARK, DECISIONS[kind].name)
    now = found.everything()
    show(found, 2)
    for partition in range(2):
        found.feed([an_event(90), an_event(7, "c"), b"{cut"], partition=partition)
    caught_up(found)
    position = again(found).project.ledger(found.name).view().position
    owner = DeltaTable(found.project.published_uri("sums")).metadata().configuration[OWNER]
    since = {table: (s.by, s.why) for table, s in (position.since or {}).items()}
    offsets = position.topics["events"].offsets
    return {"now": now, "then": again(found).everything(), "owner": owner, "since": since, "offsets": offsets}


OWN = {"rename": "renamed", "adopt": "adopted"}
"""What each writes beside its batches."""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "kind", [k if k == "rename" else pytest.param(k, marks=LONG if k == "gone" else CRASH) for k in DECISIONS]
)
def test_whatever_fails_the_same_command_leaves_what_it_would_have(prepared: Path, kind: str, way: str) -> None:
    unbroken = begun(prepared, "unbroken", kind)
    names = met(partial(DECISIONS[kind].typed, unbroken))
    expected = outcome(unbroken, kind)
    assert {"planned", "committed", "state:sums", OWN.get(kind, "planned")} <= set(names)
    for number, name in enumerate(names):
        mill = begun(prepared, f"broken-{number}", kind)
        broken(partial(DECISIONS[kind].typed, mill), way.format(name))
        DECISIONS[kind].typed(mill)
        assert outcome(mill, kind) == expected, way.format(name)
        shutil.rmtree(mill.project.folder)


@pytest.mark.crash
@pytest.mark.parametrize("kind", DECISIONS)
def test_whatever_is_killed_the_same_command_leaves_what_it_would_have(prepared: Path, kind: str) -> None:
    unbroken = begun(prepared, "unbroken", kind)
    names = met(partial(DECISIONS[kind].typed, unbroken))
    expected = outcome(unbroken, kind)
    flow = unbroken.project.pipeline("sums") if kind != "rename" else Project.load(prepared).pipeline("sums")
    writes = [b.name for b in (*boundaries_of(flow), *boundaries_beside(flow)) if b.writes and b.name in names]
    for number, place in enumerate(f"after:{name}" for name in writes):
        mill = begun(prepared, f"killed-{number}", kind)
        environ = {**os.environ, failpoints.VARIABLE: f"{place}=kill", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "machine.killed", str(mill.project.folder), kind]
        assert subprocess.run(command, env=environ, check=False).returncode == -signal.SIGKILL, place
        DECISIONS[kind].typed(mill)
        assert outcome(mill, kind) == expected, place
        shutil.rmtree(mill.project.folder)
