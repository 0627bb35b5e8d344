"""The names that Airflow uses for a pipeline. Its DAG has the name of the pipeline."""

from __future__ import annotations

POOL_PREFIX = "tidemill."

TAG = "tidemill"
"""The tag of all DAGs that Tidemill makes."""

TASK = "batch"
"""The task of a pipeline's DAG."""


def pool_of(pipeline: str) -> str:
    """The pool in which the batches of a pipeline run, live and backfilled ones."""
    return f"{POOL_PREFIX}{pipeline}"


MAINTENANCE = "tidemill.maintenance"
"""The DAG that maintains all pipelines of a project."""


def backfill_dag_of(pipeline: str) -> str:
    """The DAG that backfills a pipeline."""
    return f"{pipeline}.backfill"


def replay_dag_of(pipeline: str) -> str:
    """The DAG that replays late and rejected records of a pipeline."""
    return f"{pipeline}.replay"


def decide_dag_of(pipeline: str) -> str:
    """The DAG that records a person's decision about a pipeline that waits for one."""
    return f"{pipeline}.decide"


def rewind_dag_of(pipeline: str) -> str:
    """The DAG that takes a pipeline back to an earlier batch."""
    return f"{pipeline}.rewind"


def rebuild_dag_of(pipeline: str) -> str:
    """The DAG that builds the tables of a pipeline again from the log."""
    return f"{pipeline}.rebuild"


def verify_dag_of(pipeline: str) -> str:
    """The DAG that compares the tables of a pipeline with the log."""
    return f"{pipeline}.verify"


FORM_TASKS = {
    backfill_dag_of: "batches",
    decide_dag_of: "decide",
    rebuild_dag_of: "rebuild",
    replay_dag_of: "batches",
    rewind_dag_of: "rewind",
    verify_dag_of: "verify",
}
"""How each DAG that a person triggers is called, and its task that does it."""


def display_name(dag_id: str) -> str:
    """What Airflow shows for a DAG: the pipeline, and in words what the DAG does with it."""
    pipeline, _, kind = dag_id.partition(".")
    return f"{pipeline}: {kind.replace('_', ' ')}" if kind else pipeline


NOTE = "tidemill_note"
"""The XCom in which a task leaves the note for its run; the scheduler's listener writes it."""

WAITS, WORKS = "WAITS: ", "WORKS: "
"""The beginning of the note of a task that waits for another run, and of one that is between two of its turns."""

BACKFILL = "tidemill_airflow_backfill"
"""The key in the configuration of a run under which tasks find the name of Airflow's own backfill."""

AIRFLOW = "airflow:"
"""The beginning of the identity of every task."""

PAGES = "tidemill"
"""Where the plugin's pages are, below the address of Airflow's own."""
