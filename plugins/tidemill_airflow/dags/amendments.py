"""DAGs that change the past or tidy up: a backfill and a replay per pipeline, and one maintenance DAG for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow.sdk import DAG, Param

from tidemill_airflow.assets import batch_asset, table_asset
from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.options import DagOptions
from tidemill_airflow.dags.retrying import RETRYING
from tidemill_airflow.naming import MAINTENANCE, TAG, backfill_dag_of, pool_of, replay_dag_of
from tidemill_airflow.tasks.amendments import (
    AmendmentOperator,
    BackfillOperator,
    FoldOperator,
    MaintenanceOperator,
    ReplayOperator,
)

BEHIND_LIVE = 0
"""The weight of a task that waits for the slot of its pipeline. A live run has weight 1."""

# Airflow checks a format only if a certain package happens to be installed.
_TIME = r"^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?$"
_OFFSETS = r"^\s*[^\s:,]+-\d+:\d+(\s*,\s*[^\s:,]+-\d+:\d+)*\s*$"


def backfill_dag(entity: PipelineDag) -> DAG:
    """The DAG that reads offsets of a pipeline again. A person triggers it with a form."""
    return _triggered(backfill_dag_of(entity.pipeline), entity, BackfillOperator, _backfill_form(), BACKFILL)


def replay_dag(entity: PipelineDag) -> DAG:
    """The DAG that puts rejected or late records through a pipeline again. A person triggers it with a form."""
    return _triggered(replay_dag_of(entity.pipeline), entity, ReplayOperator, _replay_form(), REPLAY)


def maintenance_dag(entities: Iterable[PipelineDag], options: DagOptions) -> DAG:
    """The daily DAG that maintains every pipeline.

    Folds are batches, so they wait for the slot of their pipeline. The other tasks run beside its batches.
    """
    keep = Param(
        None,
        type=["null", "string"],
        title="How far back one may want to go",
        description='For example "7 days"; empty for what tidemill.toml says.',
    )
    about = options.dag(
        MAINTENANCE,
        description="Folds small files, forgets what nobody can go back to, vacuums.",
        doc_md=MAINTAINING,
        schedule="@daily",
        catchup=False,
        max_active_runs=1,
        tags=[TAG],
        params={"keep": keep},
        render_template_as_native_obj=True,
    )
    with DAG(**about) as dag:
        for entity in entities:
            FoldOperator(
                task_display_name=f"{entity.pipeline}: fold state", **_batches_of(entity, f"{entity.pipeline}.fold")
            )
            MaintenanceOperator(**_tidying_of(entity))
    return dag


def _tidying_of(entity: PipelineDag) -> dict[str, Any]:
    return entity.options.task(
        task_id=entity.pipeline,
        task_display_name=f"{entity.pipeline}: tidy tables",
        pipeline=entity.pipeline,
        project=entity.project,
        keep="{{ params.keep }}",
        owner=entity.owner,
        **RETRYING,
    )


def _triggered(
    dag_id: str, entity: PipelineDag, operator: type[AmendmentOperator], form: dict[str, Param], document: str
) -> DAG:
    about = entity.options.dag(
        dag_id,
        description=f"{operator.__name__.removesuffix('Operator')} of {entity.pipeline}, when it is triggered.",
        doc_md=document,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        tags=entity.tags,
        params=form,
        render_template_as_native_obj=True,
    )
    with DAG(**about) as dag:
        outlets = [batch_asset(entity.pipeline), *(table_asset(table) for table in entity.tables)]
        operator(request="{{ params }}", outlets=outlets, **_batches_of(entity, "batches"))
    return dag


def _batches_of(entity: PipelineDag, task_id: str) -> dict[str, Any]:
    """The arguments that all tasks executing batches of a pipeline share. Live batches go first."""
    return entity.options.task(
        task_id=task_id,
        pipeline=entity.pipeline,
        project=entity.project,
        owner=entity.owner,
        pool=pool_of(entity.pipeline),
        priority_weight=BEHIND_LIVE,
        **RETRYING,
    )


def _text(title: str, description: str, **more: Any) -> Param:
    return Param(None, type=["null", "string"], title=title, description=description, **more)


def _time(title: str, description: str) -> Param:
    return _text(title, description, format="date-time", pattern=_TIME)


def _backfill_form() -> dict[str, Param]:
    return {
        "mode": Param(
            "begin",
            enum=["begin", "resume", "cancel"],
            title="What to do",
            description="Begin a backfill, complete the one that is open, or cancel it: readers never saw it.",
        ),
        "from_time": _time("From records that arrived at", "Give times, or offsets, or windows."),
        "to_time": _time("Up to records that arrived at", "Not included. Empty: up to the last commit."),
        "from_offsets": _text("From offsets", "TOPIC-PARTITION:OFFSET, several with commas.", pattern=_OFFSETS),
        "to_offsets": _text(
            "Up to offsets",
            "Not included. A partition that only one of the two fields names has no other end.",
            pattern=_OFFSETS,
        ),
        "from_window": _time("From the window that contains", "An event time."),
        "to_window": _time("Up to the window that contains", "An event time; the window is not included."),
        "accept_loss": Param(
            False,
            type="boolean",
            title="Continue without records that the log no longer holds",
            description="They no longer count in the results.",
        ),
        **_common(),
    }


def _replay_form() -> dict[str, Param]:
    return {
        "records": Param(
            "quarantine", enum=["quarantine", "late"], title="Records", description="Rejected ones, or late ones."
        ),
        "rule": _text("Rejected for", "A text that one of the reasons contains."),
        "batch": _text("Put aside by batch", "For example 7, or 7-9.", pattern=r"^\d+(-\d+)?$"),
        "topic": _text("Of topic", "Its name."),
        "partition": Param(None, type=["null", "integer"], minimum=0, title="Of partition"),
        "offset": Param(None, type=["null", "integer"], minimum=0, title="With offset"),
        "table": _text("Refused by table", "For late records: a published table's name."),
        "since": _time("Put aside since", "By the clock of the batch."),
        "until": _time("Put aside before", "By the clock of the batch."),
        **_common(),
    }


def _common() -> dict[str, Param]:
    return {
        "batch_records": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="The most records in a batch",
            description="Empty for the project's limit.",
        ),
        "why": _text("Why", "Kept in the ledger."),
    }


BACKFILL = """\
Reads offsets of the past again, by the declaration of now, and replaces what was computed from them. Nobody sees
anything of it before its last batch, which replaces every window at once. Live batches go on in between: the task
executes one after each batch of its own, and gives its slot back after a few.
"""

REPLAY = """\
Puts records through the pipeline once more that were rejected, or that came too late. Each leaves quarantine or the
late table; what still fails goes back with its new reasons. Only the windows that they belong to are published again.
"""

MAINTAINING = """\
Makes the tables and the ledger of every pipeline small again, beside its batches: small files are folded, slices of
state that many batches left in the same panes become one, and what nobody can go back to is removed, state as well as
files that no version within the horizon needs. `keep` is that horizon.
"""
