"""What pytest finds where Tidemill is installed: the fixture `trial`. Nothing of Spark is loaded until a test asks."""

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
    """The project that is tested: named by TIDEMILL_PROJECT, or around the folder in which pytest began."""
    from tidemill.project.project import VARIABLE, Project

    named = os.environ.get(VARIABLE)
    root = pytestconfig.rootpath
    return Project.load(named or (root if (root / "tidemill.toml").is_file() else None))


@pytest.fixture(scope="session")
def tidemill_session(tidemill_project: Project) -> Iterator[SparkSession]:
    """One Spark for all tests, on this machine, with what the project says under `[spark.conf]`."""
    from dataclasses import replace

    from tidemill.project.project import Project
    from tidemill.run.sessions import project_session

    here = replace(tidemill_project.settings, remote="", master="", cores=tidemill_project.settings.cores or 2)
    session = project_session(Project(tidemill_project.folder, here))
    yield session
    session.stop()


@pytest.fixture
def trial(tidemill_project: Project, tidemill_session: SparkSession, tmp_path: Path) -> Callable[[str], Trial]:
    """Makes a `Trial` of a pipeline of the project, by its name."""
    from tidemill.testing.trial import Trial

    return lambda pipeline: Trial(tidemill_project, pipeline, tmp_path / pipeline, tidemill_session)
