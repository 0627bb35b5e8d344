"""DAGs that read the past of a pipeline again, in turns with its live batches: a backfill, and a replay."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import backfill_form, replay_form
from tidemill_airflow.dags.triggered import form_task, in_the_slot, triggered_dag
from tidemill_airflow.naming import backfill_dag_of, replay_dag_of
from tidemill_airflow.tasks.amendments import BackfillOperator, ReplayOperator


def backfill_dag(entity: PipelineDag) -> DAG:
    """The DAG that reads offsets of a pipeline again."""
    with triggered_dag(backfill_dag_of(entity.pipeline), entity, backfill_form(entity.topics), BACKFILL) as dag:
        BackfillOperator(**form_task(entity, "batches", **in_the_slot(entity)))
    return dag


def replay_dag(entity: PipelineDag) -> DAG:
    """The DAG that puts rejected or late records through a pipeline again."""
    form = replay_form(entity.topics, entity.tables)
    with triggered_dag(replay_dag_of(entity.pipeline), entity, form, REPLAY) as dag:
        ReplayOperator(**form_task(entity, "batches", **in_the_slot(entity)))
    return dag


BACKFILL = """\
Reads offsets of the past again, by today's declaration, and replaces what was computed from them.

1. Trigger it with the mode *plan only*. The log of the task says which records are read, in how many batches, and
   which windows change. A backfill reads whole batches: if you ask for a part of one, the log says how many records
   that makes. Without any bounds, the log lists the offsets of each partition.
2. Trigger it again with *do it*. Readers see nothing of it before its last batch, which replaces all windows at once.
   Live batches run in between: the task executes one after each batch of its own, and gives its slot back after a few.

*resume* completes a backfill that is open, and *cancel* drops it. Both get past runs that wait for it.
"""

REPLAY = """\
Puts records through the pipeline once more that were rejected, or that came too late.

1. Trigger it with the mode *plan only*. The log of the task names the records.
2. Trigger it again with *do it*. Each record leaves quarantine or the late table; what still fails goes back with its
   new reasons. Only the windows that the records belong to are published again.
"""
