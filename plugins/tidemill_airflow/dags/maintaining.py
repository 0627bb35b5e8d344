"""The daily DAG that keeps all pipelines small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import DAG

from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import maintenance_form
from tidemill_airflow.dags.options import DagOptions
from tidemill_airflow.dags.retrying import RETRYING
from tidemill_airflow.dags.triggered import in_the_slot
from tidemill_airflow.naming import MAINTENANCE, TAG
from tidemill_airflow.tasks.maintaining import FoldOperator, MaintenanceOperator


def maintenance_dag(entities: Iterable[PipelineDag], options: DagOptions) -> DAG:
    """The daily DAG that maintains every pipeline.

    Folds are batches, so they wait for the slot of their pipeline. The other tasks run beside its batches.
    """
    about = options.dag(
        MAINTENANCE,
        description="Folds small files, forgets what nobody can go back to, vacuums.",
        doc_md=MAINTAINING,
        schedule="@daily",
        catchup=False,
        max_active_runs=1,
        tags=[TAG],
        params=maintenance_form(),
        render_template_as_native_obj=True,
    )
    with DAG(**about) as dag:
        for entity in entities:
            FoldOperator(**_task_of(entity, f"{entity.pipeline}.fold", "fold state", **in_the_slot(entity)))
            MaintenanceOperator(**_task_of(entity, entity.pipeline, "tidy tables"))
    return dag


def _task_of(entity: PipelineDag, task_id: str, what: str, **more: Any) -> dict[str, Any]:
    return entity.options.task(
        task_id=task_id,
        task_display_name=f"{entity.pipeline}: {what}",
        pipeline=entity.pipeline,
        project=entity.project,
        owner=entity.owner,
        keep="{{ params.keep }}",
        **more,
        **RETRYING,
    )


MAINTAINING = """\
Makes the tables and the ledger of every pipeline small again, beside its batches: small files are folded, slices of
state that many batches left in the same panes become one, and what nobody can go back to is removed, state as well as
files that no version within the horizon needs. `keep` is that horizon.
"""
