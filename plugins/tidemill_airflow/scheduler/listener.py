"""What the scheduler does for the runs of pipelines: pools, the id of a backfill, and notes.

A task whose pool does not exist waits for ever, and only the scheduler's log says so. A DAG file cannot create a pool,
because it is parsed without a database. Nor can a task learn to which of Airflow's own backfills its run belongs, or
write the note of its run. The scheduler can: it tells its listeners about every run that starts or ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl
from sqlalchemy.orm import object_session

from tidemill_airflow.naming import BACKFILL, POOL_PREFIX

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


@hookimpl
def on_dag_run_running(dag_run: DagRun) -> None:
    """Add the missing pools that tasks of this run name, and tell the tasks the id of Airflow's own backfill.

    Both are written in the scheduler's own transaction.
    """
    # Every Airflow process loads this module, but only the scheduler needs the pool table.
    from tidemill_airflow.scheduler.pools import add_missing_pools

    dag, session = dag_run.dag, object_session(dag_run)
    if dag is None or session is None:
        return
    named = {task.pool for task in dag.tasks if task.pool.startswith(POOL_PREFIX)}
    if not named:
        return
    add_missing_pools(named, session)
    if dag_run.backfill_id is not None:
        dag_run.conf = {**(dag_run.conf or {}), BACKFILL: _backfill_of(dag_run)}


def _backfill_of(dag_run: DagRun) -> str:
    """What no other backfill is called: its id, and when it was begun, as a new database counts from 1 again."""
    begun = "" if dag_run.backfill is None else f"@{dag_run.backfill.created_at.isoformat()}"
    return f"{dag_run.backfill_id}{begun}"


@hookimpl
def on_dag_run_success(dag_run: DagRun) -> None:
    """Write the note that the tasks have left."""
    _write_note(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun) -> None:
    """Write the note that the tasks have left."""
    _write_note(dag_run)


def _write_note(dag_run: DagRun) -> None:
    from tidemill_airflow.scheduler.notes import write_note

    if (session := object_session(dag_run)) is not None:
        write_note(dag_run, session)
