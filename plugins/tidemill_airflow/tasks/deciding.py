"""The task that records a person's decision about a pipeline that waits for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, assert_never

from tidemill.core.errors import AmendmentError
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Committed, Decided, told
from tidemill.project.project import Project
from tidemill_airflow.tasks.asked import (
    DECISION_FIELDS,
    FROM_NOW,
    AboutAudit,
    FromNow,
    Shown,
    WithoutPartitions,
    choice_of,
)
from tidemill_airflow.tasks.at_once import FormOperator, job_of
from tidemill_airflow.tasks.batch_operator import identity_of
from tidemill_airflow.tasks.reporting import leave_note

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemill.core.plan.amendments import Reason
    from tidemill.ledger.ledger import Ledger
    from tidemill.run.watching import Watcher

_MOST = 3
"""How many batches may come before a decision about the meaning of numbers holds: open ones are completed first."""


class DecisionOperator(FormOperator):
    """Records a decision about a blocked batch, a changed declaration, or partitions that the log has lost.

    `answer_of_people` is what the task before it was answered, if it asked somebody. It goes before the form.
    """

    template_fields = ("request", "answer_of_people")
    ui_color = "#f0dcd6"
    fields = DECISION_FIELDS

    def __init__(self, *, answer_of_people: Mapping[str, Any] | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.answer_of_people = answer_of_people

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Say what waits, then record the decision."""
        if isinstance(self.answer_of_people, Mapping):
            asked = {**asked, **self.answer_of_people}
        choice, project = choice_of(asked), Project.load(self.project)
        if isinstance(choice, Shown):
            return self.told(context, "WAITING", waiting(project, self.pipeline))
        reason, identity = self.reason(asked, context), identity_of(context["ti"])
        watcher = self.batch_log(project)
        self.say(waiting(project, self.pipeline))
        match choice:
            case AboutAudit():
                said = self._audit(project, choice, reason, again=context["ti"].try_number > 1)
                return self.told(context, "DECIDED", [said])
            case FromNow():
                batches = _from_now(project, self.pipeline, reason, identity, watcher)
                return self._noted(context, FROM_NOW, reason, self.done(project, context, watcher, batches))
            case WithoutPartitions(places=places):
                from tidemill.repair.gone import declare_gone

                job = job_of(project, self.pipeline, reason=reason, identity=identity, watcher=watcher)
                done = self.done(project, context, watcher, declare_gone(job, places))
                return self._noted(context, f"gone {', '.join(map(str, places))}", reason, done)
            case _:
                assert_never(choice)

    def _noted(self, context: Context, what: str, reason: Reason, done: dict[str, Any]) -> dict[str, Any]:
        """Leave the decision as the note of the run, in place of what its batches did."""
        first = done["batches"][0]["batch_id"]
        text = f"DECIDED: {what}, by {told(reason.by, reason.why)}; it holds from batch {first}"
        leave_note(context["ti"], text, self.log)
        return done

    def _audit(self, project: Project, choice: AboutAudit, reason: Reason, *, again: bool) -> str:
        from tidemill.repair.deciding import decide
        from tidemill.repair.unfinished import blocked_ledger

        ledger, generation = blocked_ledger(job_of(project, self.pipeline))
        try:
            decide(ledger, self.pipeline, choice.decision, reason, datetime.now(UTC), batch_id=choice.batch_id)
        except AmendmentError:
            # An earlier try of this task may have recorded it, and died before it could say so.
            if not (again and _was_recorded(ledger, choice, reason)):
                raise
        next_ = "the next run of the pipeline does it"
        if generation is not None:
            next_ = f"{self.pipeline}.rebuild goes on with generation {generation} when it is triggered again"
        return (
            f"batch {choice.batch_id}: {choice.decision.value} is recorded, by {told(reason.by, reason.why)}; {next_}"
        )


def waiting(project: Project, pipeline: str) -> list[str]:
    """What waits for a person, in lines of text."""
    from tidemill.inspect.waiting import waiting_lines

    return list(waiting_lines(project, pipeline)) or ["nothing waits for a decision"]


def _was_recorded(ledger: Ledger, choice: AboutAudit, reason: Reason) -> bool:
    entries = ledger.of_batches(BatchRange(choice.batch_id, choice.batch_id + 1), Decided)
    event = entries[-1].event if entries else None
    return isinstance(event, Decided) and (event.decision, event.by, event.why) == (
        choice.decision,
        reason.by,
        reason.why,
    )


def _from_now(project: Project, pipeline: str, reason: Reason, identity: str, watcher: Watcher) -> Iterator[Committed]:
    """Execute the batch from which numbers mean something else. An open batch is completed before it.

    Raises:
        AmendmentError: the declaration did not change what numbers mean.
    """
    from tidemill.core.change.redefinition import undecided
    from tidemill.run.loop import Order, run_batches

    ledger, flow = project.ledger(pipeline), project.pipeline(pipeline)
    if not undecided(flow, ledger.view().position):
        raise AmendmentError(
            f"{pipeline}: the declaration did not change what numbers mean, so there is nothing to decide",
            fix="choose show: it says what waits for a decision",
        )
    order = Order(most=_MOST, from_now=reason)
    for commit in run_batches(project, pipeline, order, identity=identity, watcher=watcher):
        yield commit
        if not undecided(flow, ledger.view().position):
            return
