"""Starts a Spark session for a command, without the messages of its JVM."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.core.errors import EngineError

if TYPE_CHECKING:
    import typer
    from pyspark.sql import SparkSession

    from tidemill.engine.spark.session import Spark
    from tidemill.project.project import Project


def say_start(ctx: typer.Context, about: str, *, as_json: bool) -> None:
    """Say on standard error that Spark starts: it takes so long that people may think that nothing happens.

    Nothing is said to programs, and where the session is given.
    """
    if ctx.find_root().obj is None and not as_json:
        print(f"{about}: starting Spark ...", file=sys.stderr, flush=True)


def start_spark(project: Project, pipeline: str | None = None) -> Spark:
    """Start the Spark that the project asks for: for the batches of `pipeline`, or one only for reading.

    A JVM on this machine logs to `.tidemill/spark.log` in the project's folder.

    Raises:
        ConfigError: jars are missing.
        EngineError: Spark cannot be started or reached.
    """
    from pyspark.logger import PySparkLogger

    from tidemill.run.sessions import project_spark

    # These loggers would also print errors as JSON.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True

    log = project.folder / ".tidemill" / "spark.log"
    try:
        with errors_into(log):
            return project_spark(project, pipeline)
    except EngineError as error:
        raise EngineError(error.message, fix=f"{error.fix}; see {log}") from error


@contextmanager
def started_spark(
    project: Project, given: Callable[[Project], SparkSession] | None = None, *, pipeline: str | None = None
) -> Iterator[Spark]:
    """Start Spark and stop it afterwards, unless it was `given`, ran before, or other batches share it."""
    from tidemill.engine.spark.connect import leave
    from tidemill.engine.spark.session import Spark, is_running

    if given:
        yield Spark.of(given(project))
        return
    there = is_running()
    spark = start_spark(project, pipeline)
    shared = pipeline is not None and project.settings.remote
    try:
        yield spark
    finally:
        # An interrupt may have broken the connection; the JVM ends with this process anyway.
        with suppress(Exception):
            if shared:
                leave(spark.session)
            elif not there:
                spark.stop()


@contextmanager
def spark_session(project: Project, given: Callable[[Project], SparkSession] | None = None) -> Iterator[SparkSession]:
    """The session of a Spark that is started and stopped as `started_spark` does."""
    with started_spark(project, given) as spark:
        yield spark.session


@contextmanager
def errors_into(path: Path) -> Iterator[None]:
    """Redirect standard error to a file meanwhile; processes started here keep it for their whole life.

    If the file cannot be written, this output is lost. Errors that matter are raised as well.
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
