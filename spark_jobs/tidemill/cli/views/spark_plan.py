"""Spark's own plan for the work of a batch."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemill.cli.spark import spark_session
from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.log.scan import MemoryScan
from tidemill.core.plan.planning import plan_batch
from tidemill.core.plan.position import Position
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.log.pipeline_topics import bounds_of, to_be_read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidemill.core.bind.flow import Flow
    from tidemill.core.bind.sinks import Sink
    from tidemill.core.plan.plan import BatchPlan
    from tidemill.engine.attempt import Attempt
    from tidemill.engine.steps import Read
    from tidemill.project.project import Project


def spark_plans(project: Project, flow: Flow) -> dict[str, str]:
    """For each published table: Spark SQL's plan of the job that reads and aggregates, and who merges windows.

    Writes nothing.

    Raises:
        LogError: a topic that the pipeline reads does not exist.
    """
    flow = to_be_read(flow, project.log(), Position())
    plan = _plan(project, flow)
    with spark_session(project) as session:
        attempt = _attempt(project, flow, plan, session)
        read = attempt.read().kept(attempt.flow, attempt.writers.spark)
        plans = {}
        jobs = [(sink, _job(attempt, read, sink)) for sink in attempt.flow.sinks]
        for sink, frame in ((sink, job) for sink, job in jobs if job is not None):
            text = io.StringIO()
            with contextlib.redirect_stdout(text):
                frame.explain("formatted")
            plans[sink.table] = text.getvalue().strip()
            if isinstance(sink, WindowedSink):
                plans[sink.table] += f"\n\n{_merging(attempt, sink, frame)}"
        attempt.release()
        return plans


def _job(attempt: Attempt, read: Read, sink: Sink) -> DataFrame | None:
    """The job of a first batch, which has no state."""
    if not isinstance(sink, FiringSink):
        return attempt.job(read, sink)
    from tidemill.engine.aggregate.input_stream import entering

    rows = entering(read.streams, sink, None)
    return None if rows is None else attempt.firings.job(sink, rows, None)


def _merging(attempt: Attempt, sink: WindowedSink, state: DataFrame) -> str:
    """Who merges the windows of a table."""
    from tidemill.engine.aggregate.window_sql import left_to_spark

    reason = left_to_spark(sink, attempt.writers.spark.fields(state))
    return f"Windows are merged by Spark, because of {reason}" if reason else "Windows are merged in the driver"


def _plan(project: Project, flow: Flow) -> BatchPlan:
    """A plan for a few of the oldest records. With `drain` there is a plan even if the log is empty."""
    log = project.log()
    # A drained input waits for no open transaction.
    bounds = {i.topic: replace(bounds_of(log, i.topic), waiting=()) for i in flow.inputs}
    limit = ReadLimit(sum(len(b.partitions) for b in bounds.values()))
    plan = plan_batch(flow, Position(), bounds, batch_id=1, clock=datetime.now(UTC), limit=limit, drain=True)
    assert plan is not None
    return plan


def _attempt(project: Project, flow: Flow, plan: BatchPlan, session: SparkSession) -> Attempt:
    from tidemill.engine.attempt import Attempt
    from tidemill.engine.spark.session import Spark

    log = project.log()
    scans = {
        name: log.scan(topic.topic_id, topic.ranges) if topic.records else MemoryScan(records=(), ranges=())
        for name, topic in plan.topics.items()
    }
    return Attempt(
        flow=flow,
        plan=plan,
        number=1,
        scans=scans,
        spark=Spark.of(session),
        uris=project.uris(flow.name),
        driver_rows=project.settings.driver_rows,
        writer=project.settings.writer,
    )
