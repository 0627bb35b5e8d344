"""`python -m tidemill.run.class_loading JARS PROJECT ARCHIVE`: runs batches whose Java archives its classes."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.engine.spark.jars import jar_paths
from tidemill.engine.spark.session import LocalSpark, open_session
from tidemill.engine.spark.shared_classes import JARS, OPTIONS, recording
from tidemill.log.producer import Producer
from tidemill.log.records import NewRecord
from tidemill.project.project import Project
from tidemill.project.template import make_project
from tidemill.run.loop import Order, run_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_QUICK = "-XX:TieredStopAtLevel=1"
_RECORDS = 1_000
_PATIENCE = 600.0


def load_classes(jars: Path, folder: Path, archive: Path) -> None:
    """Run batches of a new project in `folder`, in each way, and let Java write `archive` at its end.

    It ends the Spark of this process.
    """
    make_project(folder)
    conf = recording({JARS: ",".join(jar_paths(jars)), OPTIONS: _QUICK}, archive)
    session = open_session(LocalSpark(jars=(), cores=2, conf=conf), name="tidemill-classes")
    java = session.sparkContext._gateway.proc  # type: ignore[union-attr]
    project = Project.load(folder)
    project.log().create_topic("orders", 2)  # type: ignore[attr-defined]
    for writer, aggregate in (("delta-rs", "auto"), ("spark", "spark")):
        _run(Project(folder, replace(project.settings, writer=writer, aggregate=aggregate, driver_records=0)), session)
    session.stop()
    # Java ends when nobody can tell it anything any more.
    java.stdin.close()
    java.wait(_PATIENCE)


def _run(project: Project, session: SparkSession) -> None:
    """Append what a pipeline may meet: records that count, late ones, and one that breaks its contract."""
    log = project.log()
    begin = datetime.now(UTC)
    times = [begin + timedelta(seconds=n) for n in range(_RECORDS)] + [begin - timedelta(hours=2)]
    values = [json.dumps({"ts": at.isoformat(), "shop": f"shop {n % 7}", "cents": n}) for n, at in enumerate(times)]
    records = [NewRecord(value=value.encode(), key=b"%d" % n) for n, value in enumerate([*values, "broken"])]
    Producer(log, "orders").append(records)  # type: ignore[arg-type]
    for _ in run_batches(project, "sales", Order(most=None), session=lambda: session):
        continue


if __name__ == "__main__":
    load_classes(*map(Path, sys.argv[1:]))
