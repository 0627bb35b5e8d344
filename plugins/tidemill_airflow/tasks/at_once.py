"""Tasks that do what a form asks for in one go, and say first what would happen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk.exceptions import AirflowRescheduleException, AirflowSkipException

from tidemill.core.errors import BackfillOpen, Busy
from tidemill.core.plan.amendments import Reason
from tidemill.project.project import Project
from tidemill.run.watching import Watcher
from tidemill_airflow.tasks.asked import DO, PLAN, check_fields, who_of, why_of
from tidemill_airflow.tasks.batch_operator import BatchOperator, identity_of, say_waiting
from tidemill_airflow.tasks.execution import commits_of
from tidemill_airflow.tasks.reporting import BatchLog, leave_note
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

    def shown(self, context: Context, lines: Iterable[str]) -> dict[str, Any]:
        """The result of a task that only says what would happen. The note of its run has the first line."""
        return self.told(context, "PLAN", [*lines, "nothing was done: this is a plan only"])

    def told(self, context: Context, what: str, lines: Iterable[str]) -> dict[str, Any]:
        """The result of a task that executes no batch: these lines. The note of its run is `what` and the first one."""
        text = self.say(lines)
        first = " ".join(text.partition("\n")[0].split())
        leave_note(context["ti"], f"{what}: {first}", self.log)
        return {"pipeline": self.pipeline, "text": text}

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
        watcher: BatchLog,
        batches: Iterator[Committed],
        counts: Callable[[Committed], bool] = lambda _: True,
    ) -> dict[str, Any]:
        """Execute the batches, unless an earlier try has; announce and return those that count.

        Raises:
            AirflowRescheduleException: something else must end first.
            AirflowSkipException: there was nothing to do.
        """
        mine = self._mine(project, context, watcher, counts)
        if not mine:
            try:
                for commit in batches:
                    self.report(commit)
            except (Busy, BackfillOpen) as somebody:
                say_waiting(self, context, somebody)
                raise AirflowRescheduleException(datetime.now(UTC) + _A_WHILE) from None  # type: ignore[no-untyped-call]
            finally:
                self.batch_id = watcher.claimed_id
            # A rebuild has another ledger now.
            project = Project.load(self.project)
            mine = self._mine(project, context, watcher, counts)
        if not mine:
            raise AirflowSkipException("nothing to do")
        return self.result(context, project, mine, watcher.known)

    def _mine(
        self, project: Project, context: Context, watcher: BatchLog, counts: Callable[[Committed], bool]
    ) -> tuple[Committed, ...]:
        identity = identity_of(context["ti"])
        events = list(events_of(project.ledger(self.pipeline), identity))
        watcher.known.learn(events)
        found = commits_of(events, identity)
        return tuple(commit for commit in found if counts(commit))


def job_of(  # noqa: PLR0913  what is done to which pipeline, for whom, and who is told
    project: Project,
    pipeline: str,
    *,
    reason: Reason | None = None,
    identity: str | None = None,
    most: int | None = None,
    watcher: Watcher | None = None,
) -> AmendmentJob:
    """Something to be done to a pipeline; without a reason, something to be looked at.

    Raises:
        DeclarationError: the pipeline does not exist.
    """
    from tidemill.repair.job import AmendmentJob

    project.pipeline(pipeline)
    reason = reason or Reason(by="", why="")
    return AmendmentJob(
        project=project,
        pipeline=pipeline,
        reason=reason,
        most=most,
        identity=identity,
        watcher=watcher or Watcher(),
    )


def user_of(context: Context) -> str | None:
    """The user of Airflow who triggered the run; None if it is not known."""
    return getattr(context.get("dag_run"), "triggering_user_name", None)
