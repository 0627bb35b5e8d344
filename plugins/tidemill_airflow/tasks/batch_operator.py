"""What all tasks that execute batches share: their identity, how they are stopped, and how they take turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException

from tidemill.core.errors import BackfillOpen, Busy, NothingRead, TidemillError
from tidemill.core.plan.work import Kind
from tidemill.project.project import Project
from tidemill_airflow.tasks.announcing import announce
from tidemill_airflow.tasks.execution import commits_of, facts, summary
from tidemill_airflow.tasks.runner import Amendment, amendment_runner, events_of

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

BATCHES_A_TURN = 5
"""After this many batches of its own, a task that changes the past frees its slot for a waiting live run."""

_A_WHILE = timedelta(seconds=10)
"""How long a turn waits for another run's batch or backfill."""

_BREATH = timedelta(seconds=5)
"""How long a turn waits after the turn before. If a task is queued again before the scheduler knows that its last turn
has ended, the scheduler takes it for dead and counts a try.
"""


class BatchOperator(BaseOperator):
    """A task that executes batches in this process and can be stopped in the middle of one."""

    def __init__(self, *, pipeline: str, project: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.project = pipeline, project
        self._executing = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the work of this task.

        Returns:
            What was committed, for later tasks: the pipeline, and for each batch its id, records, rows and watermark.
        """
        self._executing = True
        try:
            return self.work(context)
        except TidemillError as error:
            cancel(error)
        finally:
            self._executing = False

    def work(self, context: Context) -> dict[str, Any]:
        """Do what `execute` promises. Errors of Tidemill may be raised."""
        raise NotImplementedError

    def on_kill(self) -> None:
        """Stop the batch where it is: what it has not committed does not count, and the next try continues.

        Airflow calls this from its signal handler and then lets `execute` run for up to ten more seconds, while its own
        retry may run. So the handler ends `execute` itself, as a crash at this point would.
        """
        if self._executing:
            raise SystemExit(f"killed: the open batch of {self.pipeline} is left to the next try")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a task that changes the past. `amendment` returns what is left to do, or None."""

    amendment: Callable[[Project, str], Amendment | None]
    why: str = ""
    most: int | None = None
    batches: int = BATCHES_A_TURN
    may_be_empty: bool = False

    def take(self, task: BatchOperator, context: Context) -> dict[str, Any]:
        """Execute the turn. After the last turn, announce what all turns have committed.

        Raises:
            AirflowRescheduleException: there is more to do, or something else must end first.
            AirflowSkipException: there was nothing to do.
        """
        project, identity = Project.load(task.project), identity_of(context["ti"])
        try:
            amendment = self.amendment(project, identity)
            done, wait = amendment is None or self._batches(task, project, amendment, identity), _BREATH
        except (Busy, BackfillOpen) as somebody:
            task.log.info("%s", somebody)
            done, wait = False, _A_WHILE
        except NothingRead as nothing:
            if not self.may_be_empty:
                raise
            task.log.info("%s", nothing)
            done = True
        if not done:
            task.log.info("%s: the next turn goes on", task.pipeline)
            raise AirflowRescheduleException(datetime.now(UTC) + wait)  # type: ignore[no-untyped-call]
        # Earlier turns could not announce their commits.
        commits = commits_of(events_of(project.ledger(task.pipeline), identity), identity)
        if not commits:
            raise AirflowSkipException("nothing to do")
        announce(task.pipeline, commits, task.outlets, context["outlet_events"])
        return {"pipeline": task.pipeline, "batches": [facts(commit) for commit in commits]}

    def _batches(self, task: BatchOperator, project: Project, amendment: Amendment, identity: str) -> bool:
        """Execute batches and return whether all is done.

        A turn ends only after the live batch that follows the last of its own.
        """
        own = 0
        commits = amendment_runner(project, task.pipeline, amendment, identity=identity, why=self.why, most=self.most)
        for commit in commits:
            task.log.info("%s", summary(commit))
            live = commit.kind is Kind.LIVE
            own += not live
            if own > self.batches or (own == self.batches and live):
                return False
        return True


def identity_of(ti: RuntimeTaskInstanceProtocol) -> str:
    """The identity that all tries of a task share, and no other task has."""
    mapped = f"[{ti.map_index}]" if ti.map_index is not None and ti.map_index >= 0 else ""
    return f"airflow:{ti.dag_id}/{ti.run_id}/{ti.task_id}{mapped}"


def cancel(error: TidemillError) -> NoReturn:
    """Let Airflow retry an error that may go away by itself; make the task fail at once on other errors."""
    if error.retryable:
        raise error
    raise AirflowFailException(str(error)) from None
