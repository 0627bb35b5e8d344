"""What the scheduler does for the runs of pipelines: pools, the id of a backfill, and notes.

A task whose pool does not exist waits for ever, and only the scheduler's log says so. A DAG file cannot create a pool,
because it is parsed without a database. Nor can a task learn to which of Airflow's own backfills its run belongs, or
write the note of its run. The scheduler can: it tells its listeners about every run that starts or ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl
from sqlalchemy.orm import object_session

from tidemill_airflow.naming import BACKFILL, POOL_PREFIX, TAG

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

_SENDABLE = range(-(2**63), 2**64)
"""The whole numbers that Airflow can send to the process of a task."""


@hookimpl
def on_dag_run_running(dag_run: DagRun) -> None:
    """Add the missing pools that tasks of this run name, and tell the tasks the id of Airflow's own backfill.

    Values of the configuration that no task could be told become texts, which its task refuses by name.
    All of it is written in the scheduler's own transaction.
    """
    # Every Airflow process loads this module, but only the scheduler needs the pool table.
    from tidemill_airflow.scheduler.pools import add_missing_pools

    dag, session = dag_run.dag, object_session(dag_run)
    if dag is None or session is None:
        return
    if TAG in getattr(dag, "tags", ()) and (conf := sendable(dag_run.conf)) != dag_run.conf:
        dag_run.conf = conf
    named = {task.pool for task in dag.tasks if task.pool.startswith(POOL_PREFIX)}
    if not named:
        return
    add_missing_pools(named, session)
    if dag_run.backfill_id is not None:
        dag_run.conf = {**(dag_run.conf or {}), BACKFILL: _backfill_of(dag_run)}
    _write_waiting_notes(dag_run)


def sendable(value: Any) -> Any:
    """The value with a text in place of each whole number that Airflow cannot send to the process of a task.

    A form refuses such a number in its own fields, but Airflow lets runs have any others, too. The process would end
    before it could say why, in every try, and no other run of the DAG would start meanwhile.
    """
    if isinstance(value, dict):
        return {name: sendable(each) for name, each in value.items()}
    if isinstance(value, list):
        return [sendable(each) for each in value]
    if isinstance(value, int) and value not in _SENDABLE:
        return f"a whole number of {value.bit_length()} bits"
    return value


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
        _write_waiting_notes(dag_run)


def _write_waiting_notes(dag_run: DagRun) -> None:
    from tidemill_airflow.scheduler.notes import write_waiting_notes

    session = object_session(dag_run)
    if session is not None and TAG in getattr(dag_run.dag, "tags", ()):
        write_waiting_notes(dag_run, session)
