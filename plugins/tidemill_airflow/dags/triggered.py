"""What all DAGs have in common that a person triggers with a form."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param

from tidemill_airflow.assets import batch_asset, table_asset
from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.retrying import RETRYING
from tidemill_airflow.naming import pool_of

BEHIND_LIVE = 0
"""The weight of a task that waits for the slot of its pipeline. A live run has weight 1."""

RUNS = 16
"""The most active runs of a DAG with a form. A run that waits, for a person or for another run, must not keep somebody
from changing that with the same form. The ledger lets only one batch be open, whatever runs.
"""


def triggered_dag(dag_id: str, entity: PipelineDag, form: dict[str, Param], document: str, *, runs: int = RUNS) -> DAG:
    """A DAG without a schedule, which a person triggers with a form. At most `runs` of its runs are active.

    It is not paused when Airflow first sees it, unless the options name this DAG: a run of a paused DAG waits for ever
    and says nothing.
    """
    about = entity.options.dag(
        dag_id,
        description=document.partition(".")[0].replace("\n", " ") + ".",
        doc_md=document,
        schedule=None,
        catchup=False,
        max_active_runs=runs,
        is_paused_upon_creation=False,
        tags=entity.tags,
        params=form,
        render_template_as_native_obj=True,
    )
    return DAG(**about)


def form_task(entity: PipelineDag, task_id: str, **more: Any) -> dict[str, Any]:
    """The arguments of a task that reads the form, and announces what it commits. `more` goes before what all have."""
    ours = {
        "task_id": task_id,
        "pipeline": entity.pipeline,
        "project": entity.project,
        "owner": entity.owner,
        "request": "{{ params }}",
        "outlets": [batch_asset(entity.pipeline), *(table_asset(table) for table in entity.tables)],
        **RETRYING,
    }
    return entity.options.task(**{**ours, **more})


def in_the_slot(entity: PipelineDag) -> dict[str, Any]:
    """The arguments of a task that executes batches of the pipeline. Live batches go first."""
    return {"pool": pool_of(entity.pipeline), "priority_weight": BEHIND_LIVE}
