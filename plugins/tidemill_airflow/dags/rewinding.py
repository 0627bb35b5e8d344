"""DAGs that undo batches of a pipeline, build its tables again, and compare them with the log."""

from __future__ import annotations

from airflow.sdk import DAG

from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import rebuild_form, rewind_form, verify_form
from tidemill_airflow.dags.triggered import form_task, in_the_slot, triggered_dag
from tidemill_airflow.naming import rebuild_dag_of, rewind_dag_of, verify_dag_of
from tidemill_airflow.tasks.rewinding import RebuildOperator, RewindOperator
from tidemill_airflow.tasks.verifying import VerifyOperator


def rewind_dag(entity: PipelineDag) -> DAG:
    """The DAG that takes a pipeline back to an earlier batch."""
    with triggered_dag(rewind_dag_of(entity.pipeline), entity, rewind_form(), REWIND) as dag:
        RewindOperator(**form_task(entity, "rewind", **in_the_slot(entity)))
    return dag


def rebuild_dag(entity: PipelineDag) -> DAG:
    """The DAG that builds all tables of a pipeline again.

    It takes no slot of the pipeline's pool: live batches run beside it until it switches.
    """
    with triggered_dag(rebuild_dag_of(entity.pipeline), entity, rebuild_form(), REBUILD) as dag:
        RebuildOperator(**form_task(entity, "rebuild"))
    return dag


def verify_dag(entity: PipelineDag) -> DAG:
    """The DAG that compares the tables of a pipeline with the log, beside its batches."""
    with triggered_dag(verify_dag_of(entity.pipeline), entity, verify_form(), VERIFY, runs=1) as dag:
        VerifyOperator(**form_task(entity, "verify", outlets=[]))
    return dag


REWIND = """\
Undoes batches: offsets, watermark, state and tables return to what they were after an earlier batch.

1. Trigger it with the mode *plan only*. The log of the task says which batches are taken back, what is read again, and
   which versions the tables get. Without a batch, it lists the newest ones.
2. Trigger it again with *do it*. Later records run again, in the live runs that follow. Batches that commit between
   the plan and the rewind are taken back, too.

It goes back as far as the log and the versions of the tables reach, and not behind a rebuild.
"""

REBUILD = """\
Builds state and tables again from the log, beside the published ones, and switches to them in one batch.

Use it after a change of windows, keys or aggregates, or when tables were lost. Live batches of the old tables run
beside it, if they can. If the run fails or is stopped, trigger it again: it continues. *cancel* drops what is not
complete. If the log no longer holds the first records, the rebuild is refused, unless you accept the loss.
"""

VERIFY = """\
Compares published tables with one computation over the log, and changes nothing.

The task succeeds if every row is right. It fails if one differs: its log has every difference that is an example, and
counts all. It is skipped if no row was compared, because that proves nothing.
"""
