"""The Spark session that a project asks for."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.project.project import Project
from tidemill.project.settings import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.engine.spark.session import Place

_NAMESPACE = uuid.UUID("7f3c1f0e-0d0b-5b1e-9d0a-6d1c1b8a7e21")


def place_of(project: Project, pipeline: str | None = None) -> Place:
    """Where the batches of a project run.

    Raises:
        ConfigError: jars are missing that a session of our own needs, or nobody says who asks the store.
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


def project_session(project: Project, pipeline: str | None = None) -> SparkSession:
    """A session in that place, made or found.

    With `pipeline` it is for whoever has claimed the pipeline's open batch: on a Connect server all of them share one
    session, and what an earlier one left running there is interrupted.
    """
    from tidemill.engine.spark.session import open_session

    return open_session(place_of(project, pipeline), name=f"tidemill {pipeline or ''}".strip())


def _identity(project: Project, pipeline: str | None) -> str:
    """The same for all who work on a generation of a pipeline with the same code; another one for those who look."""
    from tidemill.engine.spark.workers import code_hash

    if pipeline is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, f"{project.table_uri(pipeline)} {code_hash()}"))


def renewing(project: Project, session: SparkSession) -> Callable[[], None]:
    """What gives a session the keys of the project's store as they are now; to be called before each of its jobs.

    Those of a role end while a batch goes on. A job has keys that last for a quarter of an hour or longer.
    """
    if not (is_remote(project.settings.lake) or is_remote(project.settings.log)):
        return lambda: None
    given: dict[str, str] = {}

    def renew() -> None:
        for name, value in project.access.spark().items():
            if given.get(name) != value:
                session.conf.set(name, value)
                given[name] = value

    return renew
