"""The task that copies a Kinesis stream into a topic, before the batches that read the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.tasks.batch_operator import cancel

if TYPE_CHECKING:
    from airflow.sdk import Context


class KinesisBridgeOperator(BaseOperator):
    """Copies what a stream holds now into a topic of the project's file log, each record once.

    If a task dies halfway, its retry or the next run continues after the last record that was appended.

    Args:
        stream: the name of the stream; region, endpoint and credentials come from `[kinesis]` in `tidemill.toml`.
        topic: a topic of the project's log, which must be a file log.
        most: the most records to copy in one run; None for all.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
    """

    template_fields = ("stream", "topic")
    ui_color = "#e8e0f0"

    def __init__(
        self, *, stream: str, topic: str, most: int | None = None, project: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.stream, self.topic, self.most, self.project = stream, topic, most, project

    def execute(self, context: Context) -> int:
        """Copy the records and return how many there were."""
        try:
            bridge = Project.load(self.project).bridge(self.stream, self.topic)
            total = sum(len(landed) for landed in bridge.run(most=self.most))
        except TidemillError as error:
            cancel(error)
        self.log.info("%s records from %s are in %s now", total, self.stream, self.topic)
        return total
