"""The Spark session that a project asks for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.project import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.engine.session import Place


def place_of(project: Project) -> Place:
    """Where the batches of a project run.

    Raises:
        ConfigError: jars are missing that a session of our own needs.
    """
    from tidemill.engine.jars import jar_paths
    from tidemill.engine.session import ConnectSpark, LocalSpark

    settings = project.settings
    if settings.remote:
        return ConnectSpark(remote=settings.remote, conf=settings.spark_conf)
    return LocalSpark(jars=jar_paths(Path(settings.jars)), cores=settings.cores, conf=settings.spark_conf)


def project_session(project: Project) -> SparkSession:
    """A session in that place, made or found."""
    from tidemill.engine.session import open_session

    return open_session(place_of(project), name="tidemill")
