"""What Airflow shows and runs for a pipeline, as plain values. This module imports neither Airflow nor Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from tidemill.core.bind.flow import Flow
from tidemill.inspect.lag import Sources
from tidemill_airflow.dags.documents import document, every, summary
from tidemill_airflow.dags.options import DagOptions
from tidemill_airflow.naming import TAG

TAG_LENGTH = 100
"""Airflow refuses a DAG with a longer tag, but a topic's name may have 249 characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineDag:
    """The DAG of one pipeline. `project` is the folder with tidemill.toml; `description` is one line.

    `ask_people` says that people are asked what happens to a batch that its audit blocks. With `look_every`, a run
    starts when there are records, and the triggerer looks so often whether there are.
    """

    pipeline: str
    project: str
    every: timedelta
    owner: str
    description: str
    document: str
    topics: tuple[str, ...]
    tables: tuple[str, ...]
    sources: Sources = field(default_factory=lambda: Sources(topics=()))
    ask_people: bool = False
    look_every: timedelta | None = None
    options: DagOptions = field(default_factory=DagOptions)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that help to find the DAG in Airflow's list: `tidemill`, `owner:OWNER`, `topic:TOPIC`."""
        owner = (f"owner:{self.owner}",) if self.owner else ()
        words = (TAG, *owner, *(f"topic:{topic}" for topic in self.topics))
        return tuple(dict.fromkeys(word[:TAG_LENGTH] for word in words))

    @property
    def page(self) -> str:
        """The page of the DAG: the document of the pipeline, and if records start its runs, that they do."""
        if self.look_every is None:
            return self.document
        records = f"Runs also start when the log has records: Airflow looks {every(self.look_every)}."
        return f"{self.document.rstrip()}\n\n{records}\n"


def pipeline_dag(flow: Flow, project: str, lake: str) -> PipelineDag:
    """Describe the DAG of a pipeline that belongs to the project in this folder, and publishes to this lake."""
    topics = tuple(i.topic for i in flow.sources)
    tables = tuple(s.table for s in flow.sinks)
    return PipelineDag(
        pipeline=flow.name,
        project=project,
        every=flow.spec.every,
        owner=flow.spec.owner,
        description=summary(flow),
        document=document(flow, lake),
        topics=topics,
        tables=tables,
        sources=Sources.of(flow),
    )
