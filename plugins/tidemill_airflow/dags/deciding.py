"""The DAG in which a person decides about a pipeline that waits."""

from __future__ import annotations

from typing import Any

from airflow.sdk import DAG, Param

from tidemill_airflow.dags.entities import PipelineDag
from tidemill_airflow.dags.forms import decision_form
from tidemill_airflow.dags.triggered import form_task, triggered_dag
from tidemill_airflow.naming import decide_dag_of, pool_of
from tidemill_airflow.tasks.asking import REASON, AskOperator
from tidemill_airflow.tasks.deciding import DecisionOperator

BEFORE_LIVE = 10
"""The weight of a decision. Live runs of a blocked pipeline fail at once, and have weight 1."""


def decide_dag(entity: PipelineDag) -> DAG:
    """The DAG that records a decision. Its first task asks people, if the form wants that, and is skipped otherwise."""
    dag_id = decide_dag_of(entity.pipeline)
    with triggered_dag(dag_id, entity, decision_form(), DECIDE) as dag:
        asked = AskOperator(**_question(entity))
        decided = DecisionOperator(
            **form_task(
                entity,
                "decide",
                answer_of_people="{{ ti.xcom_pull(task_ids='ask', key='answer') }}",
                trigger_rule="none_failed",
                pool=pool_of(entity.pipeline),
                priority_weight=BEFORE_LIVE,
            )
        )
        asked >> decided
    return dag


def _question(entity: PipelineDag) -> dict[str, Any]:
    about = entity.options.task(
        task_id="ask",
        pipeline=entity.pipeline,
        project=entity.project,
        owner=entity.owner,
        request="{{ params }}",
        params={REASON: _reason()},
    )
    # Airflow would take it for the time that people have to answer.
    about.pop("execution_timeout", None)
    return about


def _reason() -> Param:
    # Airflow asks for a text that is empty and must not be null.
    return Param("", type="string", title="Why", description="Your reason. The ledger keeps it.")


DECIDE = """\
Records what a person decides about a pipeline that waits, and why. After that, the runs of the pipeline go on.

1. Trigger it with *show*. The log of the task says what waits: the blocked batch with the rules and rows of its audit,
   a declaration that changes what numbers mean, partitions that the log has lost.
2. Trigger it again with your decision and your reason. For a blocked batch, give its number, too: if another batch is
   blocked by then, or none, the decision is refused.

| decision | what happens |
|---|---|
| *accept* | the next run publishes the blocked batch as it is |
| *divert* | the next run sends all of its records to quarantine, and goes on; a replay brings them back |
| *retry* | the next run audits it again; use it after you mended the contract |
| *from now* | the declaration changed what numbers mean: the new meaning holds from the next batch on |
| *gone* | batches go on without these partitions. If one returns, reading goes on where it stopped |
| *ask* | the run waits until somebody answers under *Required Actions* |
"""
