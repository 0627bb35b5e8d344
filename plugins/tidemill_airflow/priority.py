"""Live batches before backfills, wherever they wait for the same slot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.task.priority_strategy import PriorityWeightStrategy
from airflow.utils.types import DagRunType

if TYPE_CHECKING:
    from airflow.models.taskinstance import TaskInstance


class LiveBeforeBackfill(PriorityWeightStrategy):
    """A task's own weight, or one less when its run belongs to a backfill.

    It looks at the run's id and at nothing else: the scheduler calls it in the middle of a transaction, and a
    query made here ends the scheduler.
    """

    def get_weight(self, ti: TaskInstance) -> int:
        """The weight among all tasks that wait; the scheduler starts the greatest first."""
        weight = int(ti.task.priority_weight) if ti.task else 1
        return weight - (DagRunType.from_run_id(ti.run_id) is DagRunType.BACKFILL_JOB)
