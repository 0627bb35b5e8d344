"""A Spark session for a command, without the chatter of its JVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.core.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project


def start_spark(project: Project, pipeline: str | None = None) -> SparkSession:
    """The session that the project asks for: that of the batches of `pipeline`, or one to look.

    What a JVM of our own says goes to `.tidemill/spark.log` there.

    Raises:
        ConfigError: jars are missing.
        EngineError: Spark cannot be started or reached.
    """
    from pyspark.logger import PySparkLogger

    from tidemill.run.sessions import project_session

    # They print what is raised as JSON, too.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True

    log = project.folder / ".tidemill" / "spark.log"
    try:
        with errors_into(log):
            return project_session(project, pipeline)
    except EngineError as error:
        raise EngineError(error.message, fix=f"{error.fix}; see {log}") from error


@contextmanager
def spark_session(
    project: Project, given: Callable[[Project], SparkSession] | None = None, *, pipeline: str | None = None
) -> Iterator[SparkSession]:
    """The same for a while: it ends with the block, unless it was `given`, or batches of others share it."""
    from tidemill.engine.spark.connect import leave

    if given:
        yield given(project)
        return
    session = start_spark(project, pipeline)
    shared = pipeline is not None and project.settings.remote
    try:
        yield session
    finally:
        # An interrupt may have broken the connection; the JVM ends with this process anyway.
        with suppress(Exception):
            leave(session) if shared else session.stop()


@contextmanager
def errors_into(path: Path) -> Iterator[None]:
    """Standard error goes to a file meanwhile: that of processes started here for as long as they live.

    Where the file cannot be written, what they say is lost: errors that matter are raised, too.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("wb")
    except OSError:
        file = Path(os.devnull).open("wb")  # noqa: SIM115  closed below
    sys.stderr.flush()
    saved = os.dup(2)
    with file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)
