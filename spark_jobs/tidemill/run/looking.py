"""Looks at records before their batch is planned, where partitions may not be too far ahead of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from tidemill.core.bind.flow import Flow
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.plan.alignment import Look, Seen
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.native_reading import NativeReading
from tidemill.engine.looking import Looking
from tidemill.engine.spark.failures import explained
from tidemill.engine.spark.session import Spark
from tidemill.engine.storage.staged_rows import RowWriters
from tidemill.log.interface import Log
from tidemill.log.reading import in_memory
from tidemill.project.project import Project
from tidemill.run.blame import rules_named
from tidemill.run.sessions import project_spark, renewing


def look_of(project: Project, log: Log, spark: Spark | None = None) -> Look:
    """How the batches of a project look at records that they may read; `spark` is started only if it is needed.

    A look raises what a batch raises that reads these records.
    """
    return _Look(project, log, spark or Spark.later(partial(project_spark, project)))


@dataclass(frozen=True)
class _Look:
    project: Project
    log: Log
    spark: Spark

    def __call__(self, flow: Flow, plan: BatchPlan, bounds: Mapping[TopicPartition, int]) -> Seen:
        settings, renew = self.project.settings, renewing(self.project, self.spark)
        writers = RowWriters(self.spark, driver_rows=settings.driver_rows, writer=settings.writer, before_job=renew)
        reading = NativeReading(writers, settings.driver_records, partial(in_memory, most=settings.driver_records))
        looking = Looking(reading=reading, natively=settings.aggregate == "auto")
        where = f"{flow.name}: a look at the records of batch {plan.batch_id}"
        try:
            with rules_named(flow), explained(where), boundary("look", plan.batch_id):
                scans = {name: self.log.scan(plan.topic_id(name), ranges) for name, ranges in plan.reads.items()}
                return looking.look(flow, plan, scans, bounds)
        finally:
            writers.release()
