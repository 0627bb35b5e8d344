"""Tasks that do what a form asks for in one go, and say first what would happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from tidemill.core.errors import BackfillOpen, Busy
from tidemill.core.plan.amendments import Reason
from tidemill.project.project import Project
from tidemill_airflow.tasks.announcing import announce
from tidemill_airflow.tasks.asked import DO, PLAN, check_fields, who_of, why_of
from tidemill_airflow.tasks.batch_operator import BatchOperator, identity_of
from tidemill_airflow.tasks.execution import commits_of, facts, summary
from tidemill_airflow.tasks.runner import events_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemill.core.protocol.events import Committed
    from tidemill.repair.job import AmendmentJob

_A_WHILE = timedelta(seconds=10)
"""How long a task waits for another run's batch or backfill."""


class FormOperator(BatchOperator):
    """A task of a DAG that a person triggers with a form.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
        request: the values of the form.
    """

    template_fields: Collection[str] = ("request",)
    fields: ClassVar[frozenset[str]] = frozenset()
    """The fields of the form."""
    modes: ClassVar[tuple[str, ...]] = (PLAN, DO)
    """What the form can be asked for, if it has modes."""

    def __init__(self, *, request: Mapping[str, Any] | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.request = request

    def work(self, context: Context) -> dict[str, Any]:
        """Check the form, then do what it asks for."""
        asked = dict(self.request) if isinstance(self.request, Mapping) else {}
        check_fields(asked, self.fields)
        return self.answer(asked, context)

    def answer(self, asked: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """Do what the form asks for, and return what was done."""
        raise NotImplementedError

    def say(self, lines: Iterable[str]) -> str:
        """Log these lines, and return them as one text for the result of the task."""
        told = list(lines)
        for line in told:
            self.log.info("%s", line)
        return "\n".join(told)

    def shown(self, lines: Iterable[str]) -> dict[str, Any]:
        """The result of a task that only says what would happen."""
        return {"pipeline": self.pipeline, "text": self.say([*lines, "nothing was done: this is a plan only"])}

    def reason(self, asked: Mapping[str, Any], context: Context) -> Reason:
        """Who asks, and why.

        Raises:
            ConfigError: one of them is not known.
        """
        return Reason(by=who_of(asked, user_of(context)), why=why_of(asked))

    def of_this_run(self, asked: Mapping[str, Any], context: Context) -> Reason:
        """The reason by which the ledger tells what this run asked for from what others did."""
        said = self.reason(asked, context)
        return Reason(by=identity_of(context["ti"]), why=f"{said.by}: {said.why}")

    def done(
        self,
        project: Project,
        context: Context,
        batches: Iterator[Committed],
        counts: Callable[[Committed], bool] = lambda _: True,
    ) -> dict[str, Any]:
        """Execute the batches, unless an earlier try has; announce and return those that count.

        Raises:
            AirflowRescheduleException: something else must end first.
            AirflowSkipException: there was nothing to do.
        """
        mine = self._mine(project, context, counts)
        if not mine:
            try:
                for commit in batches:
                    self.log.info("%s", summary(commit))
            except (Busy, BackfillOpen) as somebody:
                self.log.info("%s; the task tries again soon", somebody)
                raise AirflowRescheduleException(datetime.now(UTC) + _A_WHILE) from None  # type: ignore[no-untyped-call]
            # A rebuild has another ledger now.
            mine = self._mine(Project.load(self.project), context, counts)
        if not mine:
            raise AirflowSkipException("nothing to do")
        announce(self.pipeline, mine, self.outlets, context["outlet_events"])
        return {"pipeline": self.pipeline, "batches": [facts(commit) for commit in mine]}

    def _mine(self, project: Project, context: Context, counts: Callable[[Committed], bool]) -> tuple[Committed, ...]:
        identity = identity_of(context["ti"])
        found = commits_of(events_of(project.ledger(self.pipeline), identity), identity)
        return tuple(commit for commit in found if counts(commit))


def job_of(
    project: Project,
    pipeline: str,
    *,
    reason: Reason | None = None,
    identity: str | None = None,
    most: int | None = None,
) -> AmendmentJob:
    """Something to be done to a pipeline; without a reason, something to be looked at.

    Raises:
        DeclarationError: the pipeline does not exist.
    """
    from tidemill.repair.job import AmendmentJob

    project.pipeline(pipeline)
    reason = reason or Reason(by="", why="")
    return AmendmentJob(project=project, pipeline=pipeline, reason=reason, most=most, identity=identity)


def user_of(context: Context) -> str | None:
    """The user of Airflow who triggered the run; None if it is not known."""
    return getattr(context.get("dag_run"), "triggering_user_name", None)
