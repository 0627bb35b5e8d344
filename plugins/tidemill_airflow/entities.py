"""What Airflow shall show and run for a pipeline, as plain values: nothing here knows Airflow or Spark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from tidemill.core.flow import Flow
from tidemill_airflow.documents import document


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDag:
    """One pipeline's DAG. `project` is the folder that holds tidemill.toml."""

    pipeline: str
    project: str
    every: timedelta
    owner: str
    description: str
    document: str
    topics: tuple[str, ...]
    tables: tuple[str, ...]

    @property
    def tags(self) -> tuple[str, ...]:
        """What the DAG is found by in the list: `tidemill`, its owner, its topics."""
        return tuple(dict.fromkeys(("tidemill", self.owner, *self.topics)))


def pipeline_dag(flow: Flow, project: str) -> PipelineDag:
    """The DAG of a pipeline that belongs to the project in this folder."""
    topics = tuple(i.topic for i in flow.inputs)
    tables = tuple(s.table for s in flow.sinks)
    return PipelineDag(
        pipeline=flow.name,
        project=project,
        every=flow.spec.every,
        owner=flow.spec.owner,
        description=flow.spec.description or f"{', '.join(topics)} to {', '.join(tables)}",
        document=document(flow),
        topics=topics,
        tables=tables,
    )
