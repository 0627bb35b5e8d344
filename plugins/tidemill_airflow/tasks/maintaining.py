"""Tasks that tidy up: folds, and maintenance beside the batches."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill_airflow.tasks.amendments import AmendmentOperator
from tidemill_airflow.tasks.asked import MAINTENANCE_FIELDS, keep_of
from tidemill_airflow.tasks.batch_operator import cancel, check_conf
from tidemill_airflow.tasks.reporting import leave_note
from tidemill_airflow.tasks.runner import Amendment, tasks_of

if TYPE_CHECKING:
    from airflow.sdk import Context


class FoldOperator(AmendmentOperator):
    """Folds the slices of many batches into one, where state has grown with their number.

    One turn folds all that is due. `keep` is only checked: a run with a wrong one does nothing.
    """

    template_fields = ("request", "keep")

    def __init__(self, *, keep: str | None = None, **kwargs: Any) -> None:
        super().__init__(batches_a_turn=sys.maxsize, **kwargs)
        self.keep = keep

    def work(self, context: Context) -> dict[str, Any]:
        """Check the form, then fold."""
        _keep(context, self.keep)
        return super().work(context)

    def amendment(self, project: Project, identity: str, asked: Mapping[str, Any]) -> Amendment | None:
        """Fold all groups that are due."""
        return Amendment(what="fold")


class MaintenanceOperator(BaseOperator):
    """Does the maintenance of a pipeline's tables and ledger, beside its batches."""

    template_fields = ("keep",)
    ui_color = "#e2ecd8"

    def __init__(self, *, pipeline: str, project: str | None = None, keep: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project, self.keep = pipeline, project, keep

    def execute(self, context: Context) -> dict[str, Any]:
        """Do all maintenance tasks.

        Returns:
            The number of files or rows that each task handled, by table and task.
        """
        found: dict[str, Any] = {}
        try:
            keep = _keep(context, self.keep)
            for task in tasks_of(Project.load(self.project), self.pipeline, keep):
                self.log.info("%s: %s: %s", task.table, task.what, task.count)
                found[f"{task.table}: {task.what}"] = task.count
        except TidemillError as error:
            leave_note(context["ti"], f"FAILED: {error}", self.log)
            cancel(error)
        return found


def _keep(context: Context, keep: object) -> timedelta | None:
    check_conf(context, MAINTENANCE_FIELDS)
    return keep_of({"keep": keep})
