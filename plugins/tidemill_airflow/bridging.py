"""The task that brings a stream of Kinesis into a topic, before the batches that read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.tasks import cancel

if TYPE_CHECKING:
    from airflow.sdk import Context


class KinesisBridgeOperator(BaseOperator):
    """Brings what a stream holds now into a topic of the project's file log, each record once.

    A task that died in the middle is followed by its retry, or the next run, which goes on behind what landed.

    Args:
        stream: its name; region, endpoint and credentials are those of `[kinesis]` in `tidemill.toml`.
        topic: of the project's log, which must be a file log.
        most: at most so many records in one run; None for all.
        project: the folder with tidemill.toml; found as the command `tidemill` finds it when it is not given.
    """

    template_fields = ("stream", "topic")
    ui_color = "#e8e0f0"

    def __init__(
        self, *, stream: str, topic: str, most: int | None = None, project: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.stream, self.topic, self.most, self.project = stream, topic, most, project

    def execute(self, context: Context) -> int:
        """How many records came."""
        try:
            bridge = Project.load(self.project).bridge(self.stream, self.topic)
            total = sum(len(landed) for landed in bridge.run(most=self.most))
        except TidemillError as error:
            cancel(error)
        self.log.info("%s records from %s are in %s now", total, self.stream, self.topic)
        return total
