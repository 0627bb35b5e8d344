"""Every boundary of a batch of sessions, firings and totals, every way to fail there, with Spark.

Readers see in the end what an unbroken run leaves, which is what a plain recomputation from the raw log gives.
`tests/machine/test_crashes_of_kinds.py` has all of it without Spark; what of it stands here unmarked shows that batches
come to the same end in Spark's workers and in their own process, and what is `long`, that they do with Spark's writer.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.kinds_recovery import BOUNDARIES, SIZES, TABLES, WRITES, a_mill_of_kinds, recomputed
from support.projects import Mill
from support.recovery import fail, fail_or_commit
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.project.project import Project
from tidemill.project.settings import FILE

pytestmark = pytest.mark.spark

Made = Callable[..., Mill]
Tables = dict[str, list[dict[str, Any]]]

LONG, CRASH = pytest.mark.long, pytest.mark.crash
SHORT = ("after:state:visits", "before:published:pairs")
BY_SPARK = [w for w in WRITES if w.partition(":")[0] in ("state", "quarantine", "late", "published")]
"""What Spark's writer writes; the ledger is written without Spark in any case."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Made:
    """Gives a copy of `a_mill_of_kinds` in a folder; with `in_workers`, Spark's workers aggregate."""
    firsts: dict[str, Path] = {}

    def copy(folder: Path, writer: str = "delta-rs", *, in_workers: bool = False) -> Mill:
        if writer not in firsts:
            firsts[writer] = tmp_path_factory.mktemp("kinds")
            a_mill_of_kinds(firsts[writer], spark, writer=writer)
        shutil.copytree(firsts[writer], folder, dirs_exist_ok=True)
        if in_workers:
            file = folder / FILE
            file.write_text(file.read_text().replace("[limits]", "[limits]\ndriver_records = 0"))
        return Mill(Project.load(folder), spark, "kinds")

    return copy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, made: Made) -> Tables:
    """Every table after a run in which nothing fails."""
    mill = made(tmp_path_factory.mktemp("whole"))
    mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == SIZES
    assert {name: tables[name] for name in TABLES} == recomputed(mill)
    return tables


@pytest.mark.parametrize("again", [0, pytest.param(1, marks=CRASH)])
@pytest.mark.parametrize("place", [p if p in SHORT else pytest.param(p, marks=CRASH) for p in BOUNDARIES])
def test_a_step_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str, again: int
) -> None:
    # Each place is met in both ways, for the time of one.
    mill = made(tmp_path, in_workers=not again)
    fail(mill, monkeypatch, f"{place}=raise")
    monkeypatch.setenv(VARIABLE, f"{place}=raise")
    for _ in range(again):
        fail_or_commit(mill)
    monkeypatch.delenv(VARIABLE)
    mill.catch_up()
    assert mill.everything() == whole


@pytest.mark.parametrize("action", [pytest.param("after:{}=raise", marks=CRASH), "{}=lose"])
@pytest.mark.parametrize("place", [pytest.param(p, marks=LONG if p == "state:pairs" else CRASH) for p in BY_SPARK])
def test_a_write_of_spark_that_fails_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str, action: str
) -> None:
    mill = made(tmp_path, "spark")
    fail(mill, monkeypatch, action.format(place))
    mill.catch_up()
    assert mill.everything() == whole


@CRASH
@pytest.mark.parametrize("place", WRITES)
def test_an_answer_that_is_lost_changes_nothing_in_the_end(
    tmp_path: Path, made: Made, whole: Tables, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    mill = made(tmp_path)
    fail(mill, monkeypatch, f"{place}=lose")
    mill.catch_up()
    assert mill.everything() == whole
