"""Creates the pool of a pipeline before the first task of a run needs it.

A task whose pool does not exist waits for ever, and only the scheduler's log says so. A DAG file cannot create a pool,
because it is parsed without a database. The scheduler can: it tells its listeners about every run that starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl
from sqlalchemy.orm import object_session

from tidemill_airflow.naming import POOL_PREFIX

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


@hookimpl
def on_dag_run_running(dag_run: DagRun) -> None:
    """Add the missing pools that tasks of this run name, in the scheduler's own transaction."""
    # Every Airflow process loads this module, but only the scheduler needs the pool table.
    from tidemill_airflow.scheduler.pools import add_missing_pools

    dag, session = dag_run.dag, object_session(dag_run)
    if dag is None or session is None:
        return
    named = {task.pool for task in dag.tasks if task.pool.startswith(POOL_PREFIX)}
    if named:
        add_missing_pools(named, session)
