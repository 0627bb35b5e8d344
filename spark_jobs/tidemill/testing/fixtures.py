"""The pytest plugin of Tidemill: the fixture `trial`. Spark is loaded only when a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
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
def trial(tidemill_project: Project, tidemill_session: SparkSession, tmp_path: Path) -> Callable[[str], Trial]:
    """Return a function that creates a `Trial` of a pipeline of the project, by name."""
    from tidemill.testing.trial import Trial

    return lambda pipeline: Trial(tidemill_project, pipeline, tmp_path / pipeline, tidemill_session)
