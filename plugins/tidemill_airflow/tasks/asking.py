"""Asks people about a blocked batch, with Airflow's human-in-the-loop operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException

from tidemill.core.errors import TidemillError
from tidemill.core.protocol.events import Decision
from tidemill.project.project import Project
from tidemill_airflow.naming import decide_dag_of
from tidemill_airflow.tasks.asked import ASK
from tidemill_airflow.tasks.at_once import job_of
from tidemill_airflow.tasks.batch_operator import cancel

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemill.core.protocol.view import OpenBatch

REASON = "reason"
"""The field of the answer. A field called as one of the DAG's form would get that one's value."""


class AskOperator(HITLOperator):
    """Waits until a person answers what happens to the blocked batch. It holds no worker while it waits.

    It is skipped if the form does not say `ask`, or if no batch is blocked. The answer is for `DecisionOperator`: it
    names the batch that the person has seen. `params` has the field `REASON`.
    """

    template_fields = ("subject", "body", "request")

    def __init__(
        self,
        *,
        pipeline: str,
        project: str | None = None,
        request: Mapping[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            subject=f"{pipeline}: an audit blocks a batch",
            options=[decision.value for decision in Decision],
            **kwargs,
        )
        self.pipeline, self.project, self.request = pipeline, project, request

    def execute(self, context: Context) -> Any:
        """Ask, and wait for the answer."""
        if not isinstance(self.request, Mapping) or self.request.get("decision") != ASK:
            raise AirflowSkipException("the form has the decision itself")
        try:
            opened = blocked_batch(self.pipeline, self.project)
        except TidemillError as error:
            cancel(error)
        if opened is None:
            raise AirflowSkipException("no batch is blocked")
        from tidemill.inspect.open_batch import blocked_lines

        number = opened.plan.batch_id
        self.subject = f"{self.pipeline}: the audit blocks batch {number}"
        # Values of records must not end the block.
        self.body = "```text\n" + "\n".join(blocked_lines(opened)).replace("`", "'") + "\n```"
        context["ti"].xcom_push("batch", number)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Hand the answer on."""
        found = super().execute_complete(context, event)
        [chosen], user = found["chosen_options"], found["responded_by_user"]
        answer = {
            "decision": chosen,
            "batch": context["ti"].xcom_pull(key="batch", task_ids=self.task_id),
            "why": found["params_input"].get(REASON),
            **({"by": user["name"]} if user else {}),
        }
        context["ti"].xcom_push("answer", answer)
        self.log.info("%s: batch %s: %s", self.pipeline, answer["batch"], chosen)
        return answer


def blocked_batch(pipeline: str, project: str | None) -> OpenBatch | None:
    """The batch of a pipeline that waits for a decision."""
    from tidemill.repair.unfinished import blocked_ledger

    opened = blocked_ledger(job_of(Project.load(project), pipeline))[0].view().open_batch
    return opened if opened is not None and opened.is_blocked else None


def ask_people(context: Context) -> None:
    """Trigger the DAG of decisions with `ask`, if a batch is blocked: a callback of failed tasks.

    People are asked once about each batch, and again if a later attempt at it is blocked.
    """
    task: Any = context["task"]
    pipeline, project = getattr(task, "pipeline", None), getattr(task, "project", None)
    if pipeline is None or (opened := blocked_batch(pipeline, project)) is None:
        return
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun
    from airflow.sdk.execution_time.task_runner import SUPERVISOR_COMMS

    number = opened.plan.batch_id
    asked = SUPERVISOR_COMMS.send(
        TriggerDagRun(
            dag_id=decide_dag_of(pipeline),
            run_id=f"blocked__batch_{number}_attempt_{opened.attempt}",
            conf={"decision": ASK, "batch": number},
            note=f"Batch {number} is blocked by its audit, and waits for an answer.",
        )
    )
    if not isinstance(asked, ErrorResponse):
        task.log.info("asked under Required Actions of %s what happens to batch %s", decide_dag_of(pipeline), number)
