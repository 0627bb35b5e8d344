"""Opens the Spark session that a project's settings ask for."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.project.project import Project
from tidemill.project.settings import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.engine.spark.session import Place, Spark

Opens = Callable[[], "Spark | SparkSession"]
"""Gives the Spark in which batches run, or its session."""

_NAMESPACE = uuid.UUID("7f3c1f0e-0d0b-5b1e-9d0a-6d1c1b8a7e21")


def place_of(project: Project, pipeline: str | None = None) -> Place:
    """Where the batches of a project run.

    Raises:
        ConfigError: jars for a local session are missing, or there are no credentials for the store.
    """
    from tidemill.engine.spark.jars import jar_paths, locked_jars
    from tidemill.engine.spark.session import ClusterSpark, ConnectSpark, LocalSpark

    settings = project.settings
    remote = is_remote(settings.lake) or is_remote(settings.log)
    conf = {**(project.access.spark() if remote else {}), **settings.spark_conf}
    if settings.remote:
        return ConnectSpark(remote=settings.remote, identity=_identity(project, pipeline), conf=conf)
    jars = jar_paths(Path(settings.jars), locked_jars(kafka=settings.kafka is not None, s3=remote))
    if settings.master:
        return ClusterSpark(master=settings.master, jars=jars, conf=conf)
    return LocalSpark(jars=jars, cores=settings.cores, conf=conf)


def project_spark(project: Project, pipeline: str | None = None) -> Spark:
    """Start or reuse the Spark in the project's place.

    A batch calls it when it first needs Spark. Pass `pipeline` only after claiming its open batch: on a Connect server
    all claimants share one session, and work that an earlier one left running there is interrupted.
    """
    from tidemill.engine.spark.session import open_spark

    return open_spark(place_of(project, pipeline), name=f"tidemill {pipeline or ''}".strip())


def project_session(project: Project, pipeline: str | None = None) -> SparkSession:
    """The session of the Spark in the project's place; see `project_spark`."""
    return project_spark(project, pipeline).session


def _identity(project: Project, pipeline: str | None) -> str:
    """The session's id: the same for all batches of a generation with the same code; random without `pipeline`."""
    from tidemill.engine.spark.workers import code_hash

    if pipeline is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, f"{project.table_uri(pipeline)} {code_hash()}"))


def renewing(project: Project, spark: Spark) -> Callable[[], None]:
    """Return a function that gives Spark's session the store's current credentials. Call it before each job.

    Credentials of a role can expire during a batch. A job starts with ones that last at least a quarter of an hour.
    """
    if not (is_remote(project.settings.lake) or is_remote(project.settings.log)):
        return lambda: None
    given: dict[str, str] = {}

    def renew() -> None:
        for name, value in project.access.spark().items():
            if given.get(name) != value:
                spark.session.conf.set(name, value)
                given[name] = value

    return renew
