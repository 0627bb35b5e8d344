"""What tests with the tiny engine begin with."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, sums
from support.recovery import a_wide_mill, recomputed
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Committed
from tidemill.engine.publish import kept_pieces
from tidemill.ledger.process import this_process
from tidemill.maintain import maintenance
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.run import batch

WHO = "somebody"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of a few lines instead of Spark."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)


@pytest.fixture
def early_maintenance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest two commits can always be rewound to, so maintenance has something to remove."""
    monkeypatch.setattr(maintenance, "AT_LEAST", 2)


@pytest.fixture
def a_mill(tmp_path: Path, tiny: None) -> Callable[..., Mill]:
    """A pipeline of one partition on the tiny engine."""
    return lambda **settings: sums(tmp_path, NO_SPARK, **{"lateness": "10 s", **settings})


def again(mill: Mill) -> Mill:
    """The same as another process finds it."""
    return Mill(Project.load(mill.project.folder), mill.session, mill.name)


def run(mill: Mill, **more: Any) -> Any:
    """The next batch of the published generation, by somebody who takes over at once."""
    return again(mill).run(executor=this_process(WHO), **more)


def an_amendment(mill: Mill, most: int | None = None) -> AmendmentJob:
    """Something to be done to it."""
    return AmendmentJob(
        project=again(mill).project,
        pipeline="sums",
        reason=Reason(by=WHO),
        most=most,
        identity=WHO,
        session=lambda: NO_SPARK,
    )


def ids(commits: Iterator[Committed]) -> list[int]:
    """The batches that it takes."""
    return [commit.batch_id for commit in commits]


@pytest.fixture(scope="session")
def tiny_wide(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Mill]:
    """Gives a copy of `a_wide_mill` in a folder; the test patches its engine with `tiny`."""
    made = tmp_path_factory.mktemp("wide")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        a_wide_mill(made, NO_SPARK)

    def copy(folder: Path) -> Mill:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        return Mill(Project.load(folder), NO_SPARK, "wide")

    return copy


@pytest.fixture(scope="session")
def tiny_whole(
    tmp_path_factory: pytest.TempPathFactory, tiny_wide: Callable[[Path], Mill]
) -> dict[str, list[dict[str, Any]]]:
    """Every table of a wide mill after a run in which nothing fails, which is what the raw log gives."""
    mill = tiny_wide(tmp_path_factory.mktemp("whole"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "Attempt", TinyAttempt)
        mill.catch_up()
    tables = mill.everything()
    assert {name: len(rows) for name, rows in tables.items()} == {"sums": 9, "totals": 5, "quarantine": 2, "late": 6}
    assert {name: tables[name] for name in ("sums", "totals")} == recomputed(mill)
    return tables


@pytest.fixture(autouse=True)
def _little_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """State of firings is merged and written anew after a few batches, not after thousands."""
    monkeypatch.setattr(kept_pieces, "FEW_WHOLE", 2)
    monkeypatch.setattr(kept_pieces, "TIMES", 2)
    monkeypatch.setattr(kept_pieces, "OUTGROWN", 6)


@pytest.fixture
def much_state(monkeypatch: pytest.MonkeyPatch, _little_state: None) -> None:
    """State of firings is not written anew before it has thousands of rows."""
    monkeypatch.setattr(kept_pieces, "OUTGROWN", 10_000)
