"""The DAG of a pipeline, with one task: a batch, or several for a manual run."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param

from tidemill_airflow.assets import batch_asset, table_asset
from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import MOST_RECORDS
from tidemill_airflow.dags.retrying import RETRYING
from tidemill_airflow.dags.schedules import schedule
from tidemill_airflow.naming import TASK, pool_of
from tidemill_airflow.scheduler.priority import LiveBeforeBackfill
from tidemill_airflow.tasks.asking import ask_people
from tidemill_airflow.tasks.micro_batch import MAX_BATCHES, MicroBatchOperator


def make_dag(entity: PipelineDag) -> DAG:
    """Create the DAG of one pipeline: a single task, because each further task would cost a second per batch."""
    about = entity.options.dag(
        entity.pipeline,
        description=entity.description,
        doc_md=entity.page,
        schedule=schedule(entity),
        catchup=False,
        max_active_runs=1,
        tags=entity.tags,
        params=run_limits(),
        render_template_as_native_obj=True,
    )
    task = entity.options.task(
        task_id=TASK,
        pipeline=entity.pipeline,
        project=entity.project,
        max_records="{{ params.max_records }}",
        max_batches="{{ params.max_batches }}",
        owner=entity.owner,
        pool=pool_of(entity.pipeline),
        weight_rule=LiveBeforeBackfill(),
        outlets=[batch_asset(entity.pipeline), *(table_asset(table) for table in entity.tables)],
        **RETRYING,
    )
    if entity.ask_people:
        task["on_failure_callback"] = [ask_people, *_callbacks(task.get("on_failure_callback"))]
    with DAG(**about) as dag:
        MicroBatchOperator(**task)
    return dag


def _callbacks(chosen: Any) -> list[Any]:
    """The callbacks that the project has chosen: none, one, or several."""
    if chosen is None:
        return []
    return [chosen] if callable(chosen) else list(chosen)


def run_limits() -> dict[str, Param]:
    """The form of a manual run: the most records per batch, and the most batches.

    Such a run catches up in limited steps. Like every run it continues after the last commit, and it reads nothing
    again that was committed. A scheduled run executes one batch with the project's limit.
    """
    return {
        "max_records": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            maximum=MOST_RECORDS,
            title="The most records in a batch",
            description="The run goes on after the last commit, batch by batch; empty for the project's limit.",
        ),
        "max_batches": Param(
            1,
            type="integer",
            minimum=1,
            maximum=MAX_BATCHES,
            title="The most batches in this run",
            description="One after the other; the run ends earlier when it has caught up.",
        ),
    }
