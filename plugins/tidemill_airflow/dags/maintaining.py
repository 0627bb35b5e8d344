"""The daily DAG that keeps all pipelines small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import DAG

from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import maintenance_form
from tidemill_airflow.dags.triggered import RETRIES, RETRY_DELAY, in_the_slot
from tidemill_airflow.naming import MAINTENANCE
from tidemill_airflow.tasks.maintaining import FoldOperator, MaintenanceOperator


def maintenance_dag(entities: Iterable[PipelineDag]) -> DAG:
    """The daily DAG that maintains every pipeline.

    Folds are batches, so they wait for the slot of their pipeline. The other tasks run beside its batches.
    """
    with DAG(
        MAINTENANCE,
        description="Folds small files, forgets what nobody can go back to, vacuums.",
        doc_md=MAINTAINING,
        schedule="@daily",
        catchup=False,
        max_active_runs=1,
        tags=["tidemill"],
        params=maintenance_form(),
        render_template_as_native_obj=True,
    ) as dag:
        for entity in entities:
            common: dict[str, Any] = {
                "pipeline": entity.pipeline,
                "project": entity.project,
                "owner": entity.owner,
                "retries": RETRIES,
                "retry_delay": RETRY_DELAY,
            }
            FoldOperator(task_id=f"{entity.pipeline}.fold", **common, **in_the_slot(entity))
            MaintenanceOperator(task_id=entity.pipeline, keep="{{ params.keep }}", **common)
    return dag


MAINTAINING = """\
Makes the tables and the ledger of every pipeline small again, beside its batches: small files are folded, slices of
state that many batches left in the same panes become one, and what nobody can go back to is removed, state as well as
files that no version within the horizon needs. `keep` is that horizon.
"""
