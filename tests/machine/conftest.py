"""What tests with the tiny engine begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill, sums
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Committed
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob
from tidemill.run import batch

WHO = "somebody"


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of a few lines instead of Spark."""
    monkeypatch.setattr(batch, "Attempt", TinyAttempt)


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
