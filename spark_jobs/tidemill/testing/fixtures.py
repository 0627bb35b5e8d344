"""The pytest plugin of Tidemill: the fixture `trial`, and short reports of its errors.

Spark is loaded only when a test asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project
    from tidemill.testing.trial import Trial


@pytest.fixture(scope="session")
def tidemill_project(pytestconfig: pytest.Config) -> Project:
    """The tested project: named by TIDEMILL_PROJECT, or found around the folder where pytest was started."""
    from tidemill.project.project import VARIABLE, Project

    named = os.environ.get(VARIABLE)
    root = pytestconfig.rootpath
    return Project.load(named or (root if (root / "tidemill.toml").is_file() else None))


@pytest.fixture(scope="session")
def tidemill_session(tidemill_project: Project) -> Iterator[SparkSession]:
    """One local Spark session for all tests, with the project's `[spark.conf]`."""
    from dataclasses import replace

    from tidemill.project.project import Project
    from tidemill.run.sessions import project_session

    here = replace(tidemill_project.settings, remote="", master="", cores=tidemill_project.settings.cores or 2)
    session = project_session(Project(tidemill_project.folder, here))
    yield session
    session.stop()


@pytest.fixture
def trial(
    tidemill_project: Project, tidemill_session: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[str], Trial]:
    """Return a function that creates a `Trial` of a pipeline of the project, by name."""
    from tidemill.testing.trial import Trial

    made: list[Trial] = []
    request.node.stash[_TRIALS] = made

    def make(pipeline: str) -> Trial:
        made.append(Trial(tidemill_project, pipeline, tmp_path / pipeline, tidemill_session))
        return made[-1]

    return make


_TRIALS = pytest.StashKey[list["Trial"]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what became of the records to the report of a failed test.

    An error of Tidemill is reported as its text, at the line of the test: frames of Tidemill tell a user nothing.
    `--full-trace` shows them.
    """
    report = yield from _report(item, call)
    if report.failed and call.when == "call" and (trials := item.stash.get(_TRIALS, [])):
        from tidemill.testing.report import told

        if text := told(trials):
            report.sections.append(("what became of the records", text))
    return report


def _report(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    at_all = call.excinfo is not None and "tidemill_project" in getattr(item, "fixturenames", ())
    if not at_all or item.config.getoption("fulltrace"):
        return (yield)
    from tidemill.core.errors import TidemillError

    error = call.excinfo.value if call.excinfo is not None else None
    if not isinstance(error, TidemillError):
        return (yield)
    kept = _frames_of_the_test(error.__traceback__)
    error.__cause__, error.__suppress_context__ = None, True
    if kept:
        call.excinfo = pytest.ExceptionInfo.from_exception(error.with_traceback(_joined(kept)))
    report = yield
    if not kept and call.excinfo is not None:
        report.longrepr = call.excinfo.getrepr(style="value")
    return report


def _frames_of_the_test(trace: TracebackType | None) -> list[TracebackType]:
    """What comes before the first frame of Tidemill; nothing if pytest itself called it, for a fixture of this file."""
    frames: list[TracebackType] = []
    while trace is not None and _package(trace) != "tidemill":
        frames.append(trace)
        trace = trace.tb_next
    return [] if not frames or _package(frames[-1]) == "_pytest" else frames


def _package(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]


def _joined(frames: Sequence[TracebackType]) -> TracebackType | None:
    joined: TracebackType | None = None
    for each in reversed(frames):
        joined = TracebackType(joined, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return joined
