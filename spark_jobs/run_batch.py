r"""The entry for spark-submit: `tidemill run` in the session that the submit brings.

    TIDEMILL_PROJECT=/srv/project spark-submit --master spark://host:7077 --jars ... \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        run_batch.py page_views --until-caught-up --json

The arguments are those of `tidemill run`, and so are the exit codes. The driver needs Python with the package
`tidemill`, executors the same Python with pyarrow, msgspec, polars, duckdb and datasketches; all must reach the
project's log and lake.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tidemill.cli.main import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project.project import Project


def submitted_session(project: Project) -> SparkSession:
    """The session of the submit, with the settings that a batch relies on and those of the project."""
    from pyspark.sql import SparkSession

    from tidemill.engine.spark.settings import settle  # noqa: PLC0415
    from tidemill.engine.spark.workers import equip  # noqa: PLC0415

    session = settle(
        SparkSession.builder.appName(f"tidemill {project.folder.name}").getOrCreate(), project.settings.spark_conf
    )
    master = session.conf.get("spark.master") or ""
    if not master.startswith("local"):
        equip(session, where=master)
    return session


if __name__ == "__main__":
    main(["run", *sys.argv[1:]], session=submitted_session)
