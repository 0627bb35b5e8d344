"""Every boundary of a batch of sessions, firings and totals, every way to fail there, without Spark.

Readers see in the end what an unbroken run leaves, which is what a plain recomputation from the raw log gives.
`tests/batch/test_crashes_of_kinds.py` does the same with Spark.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.kinds_recovery import BOUNDARIES, CLAIMED, READS, SIZES, TABLES, WRITES, a_mill_of_kinds, recomputed
from support.projects import NO_SPARK, Mill, somebody
from support.recovery import fail, fail_or_commit, finish, paused
from support.short_forms import shortened
from tidemill.core.errors import Fenced
from tidemill.core.protocol import failpoints
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.project.project import Project
from tidemill.run import batch

Made = Callable[[Path], Mill]
Tables = dict[str, list[dict[str, Any]]]

AFTER = [place for place in BOUNDARIES if place.startswith("after:")]
"""What is done at a boundary is lost before it, and stays after it: the rest is all but the same as at the next one."""
BEFORE_WRITES = [f"before:{name}" for name in WRITES[1:]]
"""Where whoever sleeps would write next: what he reads before changes nothing."""

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture(autouse=True)
def _answers_that_can_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test loses its own: an answer is lost once in a process."""
    monkeypatch.setattr(failpoints, "_lost", set())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Gives a copy of `a_mill_of_kinds` in a folder."""
    first = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        a_mill_of_kinds(first, NO_SPARK)

    def copy(folder: Path) -> Mill:
        shutil.copytree(first, folder, dirs_exist_ok=True)
        return Mill(Project.load(folder), NO_SPARK, "kinds")

    return copy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, made: Made) -> Tables:
    """Every table after a run in which nothing fails."""
    mill = made(tmp_path_factory.mktemp("whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == SIZES
    assert {name: tables[name] for name in TABLES} == recomputed(mill)
    return tables


def test_a_batch_comes_to_every_boundary_and_to_the_writes_in_their_order(
    tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[str] = []
    monkeypatch.setattr(failpoints, "_reach", lambda side, name, _: met.append(name) if side == "after" else None)
    made(tmp_path).run(drain=True)
    assert set(met) == {*READS, *WRITES}
    assert [name for name in met if name in WRITES] == WRITES


@pytest.mark.parametrize("again", [0, pytest.param(1, marks=pytest.mark.crash)])
@pytest.mark.parametrize("place", shortened(BOUNDARIES, AFTER, pytest.mark.crash))
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str, again: int
) -> None:
    mill = made(tmp_path)
    fail(mill, monkeypatch, f"{place}=raise")
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    for _ in range(again):
        fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("place", WRITES)
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = made(tmp_path)
    fail(mill, monkeypatch, f"{place}=lose")
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("place", shortened(CLAIMED, BEFORE_WRITES, pytest.mark.crash))
def test_a_zombie_is_fenced_and_changes_nothing(
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = made(tmp_path)
    happened = paused(monkeypatch, place, lambda: finish(mill, 0, drain=True))
    with pytest.raises(Fenced):
        mill.run(executor=somebody("the slower"), drain=True)
    assert happened
    mill.catch_up()
    assert mill.everything() == whole
