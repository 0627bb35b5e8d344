"""What tests of going back begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.projects import Mill, an_event, sums
from support.writers import WRITERS
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Committed
from tidemill.project.project import Project
from tidemill.repair.job import AmendmentJob


def an_amendment(mill: Mill, *, most: int | None = None) -> AmendmentJob:
    """Somebody who wants something done to the pipeline, as it is declared now."""
    project = Project.load(mill.project.folder)
    return AmendmentJob(
        project=project,
        pipeline=mill.name,
        reason=Reason(by="somebody", why="a test"),
        most=most,
        session=lambda: mill.session,
    )


def done(commits: Any) -> list[Committed]:
    """All of them."""
    return list(commits)


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> str:
    """Who writes the tables."""
    return str(request.param)


@pytest.fixture
def late_mill(tmp_path: Path, spark: Any) -> Callable[..., Mill]:
    """A mill with three windows published, two late records and one rejected."""

    def make(writer: str = "delta-rs", **settings: Any) -> Mill:
        mill = sums(tmp_path, spark, writer=writer, **settings)
        mill.feed([an_event(1), an_event(2, "b"), an_event(12), an_event(25, "b"), an_event(40)])
        mill.run()
        mill.feed([an_event(3, amount=10), b"{cut", an_event(5, "c"), an_event(50)])
        mill.run()
        return mill

    return make
