"""Gives live batches priority over backfills when they wait for the same slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.task.priority_strategy import PriorityWeightStrategy
from airflow.utils.types import DagRunType

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance


class LiveBeforeBackfill(PriorityWeightStrategy):
    """A task's own weight, or one less if its run belongs to a backfill.

    It reads only the run's id: the scheduler calls it in the middle of a transaction, and a query made here would stop
    the scheduler.
    """

    def get_weight(self, ti: TaskInstance) -> int:
        """The weight among all waiting tasks. The scheduler starts the greatest first."""
        weight = int(ti.task.priority_weight) if ti.task else 1
        return weight - (DagRunType.from_run_id(ti.run_id) is DagRunType.BACKFILL_JOB)
