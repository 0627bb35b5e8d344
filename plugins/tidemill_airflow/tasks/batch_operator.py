"""What all tasks that execute batches share: their identity, how they are stopped, and how they take turns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException, AirflowSkipException
from airflow.utils.types import DagRunType

from tidemill.core.errors import BackfillOpen, Busy, NothingRead, TidemillError
from tidemill.core.plan.work import Kind
from tidemill.project.project import Project
from tidemill_airflow.naming import AIRFLOW, BACKFILL, WAITS, WORKS, backfill_dag_of
from tidemill_airflow.tasks.announcing import announce
from tidemill_airflow.tasks.asked import check_fields
from tidemill_airflow.tasks.execution import commits_of
from tidemill_airflow.tasks.facts import Known, facts, note_of, rejected, summary
from tidemill_airflow.tasks.lineage import Told, lineage
from tidemill_airflow.tasks.links import links_of
from tidemill_airflow.tasks.reporting import BatchLog, leave_note, without_chatter
from tidemill_airflow.tasks.runner import Amendment, amendment_runner, events_of

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context
    from airflow.sdk.types import RuntimeTaskInstanceProtocol

    from tidemill.core.protocol.events import Committed

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
        self.operator_extra_links = links_of(pipeline, self.outlets)
        self.batch_id: int | None = None
        self._told: Told | None = None
        self._executing = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the work of this task.

        Returns:
            What was committed, for later tasks: the pipeline, and the `facts` of each batch.
        """
        self._executing = True
        try:
            with without_chatter():
                return self.work(context)
        except AirflowSkipException as skip:
            leave_note(context["ti"], f"skipped: {skip}", self.log)
            raise
        except TidemillError as error:
            self.log.error("%s: %s", type(error).__name__, error)
            leave_note(context["ti"], f"FAILED: {error}", self.log)
            cancel(error)
        finally:
            self._executing = False

    def batch_log(self, project: Project) -> BatchLog:
        """A log of the batches that this task executes."""
        return BatchLog(project, self.log)

    def report(self, commit: Committed) -> None:
        """Write the end of a batch to the log."""
        self.log.info("%s", summary(commit))
        if text := rejected(commit):
            self.log.warning("%s", text)

    def result(self, context: Context, project: Project, commits: Sequence[Committed], known: Known) -> dict[str, Any]:
        """Announce what was committed, leave the note, and return what later tasks get."""
        batches = [facts(commit, known) for commit in commits]
        self.batch_id = commits[-1].batch_id
        new = announce(self, context, project, batches, since=min(commit.started for commit in commits))
        self._told = Told(project=project, pipeline=self.pipeline, commits=tuple(commits), batches=tuple(new))
        leave_note(context["ti"], note_of(batches, known.widened), self.log)
        widened = {} if known.widened is None else known.widened.json
        return {"pipeline": self.pipeline, "batches": batches, **widened}

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """The lineage of what this task has committed and announced, for Airflow's OpenLineage provider."""
        if self._told is None or not self._told.batches:
            return None
        from tidemill_airflow.tasks.openlineage import lineage_of

        return lineage_of(lineage(self._told), task_instance)

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
    """One turn of a task that changes the past. `amendment` returns what is left to do, or None.

    `backfill` names Airflow's own backfill that the run belongs to, where it is known.
    """

    amendment: Callable[[Project, str], Amendment | None]
    why: str = ""
    most: int | None = None
    batches: int = BATCHES_A_TURN
    may_be_empty: bool = False
    backfill: str | None = None

    def take(self, task: BatchOperator, context: Context) -> dict[str, Any]:
        """Execute the turn. After the last turn, announce what all turns have committed.

        Raises:
            AirflowRescheduleException: there is more to do, or something else must end first.
            AirflowSkipException: there was nothing to do.
        """
        project, identity = Project.load(task.project), identity_of(context["ti"], self.backfill)
        watcher, empty = task.batch_log(project), "nothing to do"
        try:
            amendment = self.amendment(project, identity)
            done = amendment is None or self._batches(task, project, amendment, identity, watcher)
            wait = _BREATH
            if not done:
                leave_note(context["ti"], f"{WORKS}it frees its slot after each few batches, and goes on", task.log)
        except (Busy, BackfillOpen) as somebody:
            say_waiting(task, context, somebody)
            done, wait = False, _A_WHILE
        except NothingRead as nothing:
            if not self.may_be_empty:
                raise
            done, empty = True, nothing.message
        finally:
            task.batch_id = watcher.claimed_id
        if not done:
            task.log.info("%s: the next turn goes on", task.pipeline)
            raise AirflowRescheduleException(datetime.now(UTC) + wait)  # type: ignore[no-untyped-call]
        # Earlier turns could not announce their commits.
        events = list(events_of(project.ledger(task.pipeline), identity))
        commits = commits_of(events, identity)
        if not commits:
            raise AirflowSkipException(empty)
        watcher.known.learn(events)
        return task.result(context, project, commits, watcher.known)

    def _batches(
        self, task: BatchOperator, project: Project, amendment: Amendment, identity: str, watcher: BatchLog
    ) -> bool:
        """Execute batches and return whether all is done.

        A turn ends only after the live batch that follows the last of its own.
        """
        own, watcher.wanted = 0, amendment.asked
        commits = amendment_runner(
            project, task.pipeline, amendment, identity=identity, why=self.why, most=self.most, watcher=watcher
        )
        for commit in commits:
            task.report(commit)
            live = commit.kind is Kind.LIVE
            own += not live
            if own > self.batches or (own == self.batches and live):
                return False
        return True


def identity_of(ti: RuntimeTaskInstanceProtocol, backfill: str | None = None) -> str:
    """The identity that all tries of a task share, and no other task has.

    Another `backfill` of Airflow makes it another task, although Airflow then uses the same run again.
    """
    mapped = f"[{ti.map_index}]" if ti.map_index is not None and ti.map_index >= 0 else ""
    return f"{AIRFLOW}{ti.dag_id}/{ti.run_id}/{ti.task_id}{mapped}{of_backfill(backfill)}"


def of_backfill(backfill: str | None) -> str:
    """The end of the identity of all tasks of one of Airflow's own backfills; empty for None."""
    return "" if backfill is None else f"#{backfill}"


def check_conf(context: Context, fields: Collection[str]) -> None:
    """Refuse what a person gives a run in its configuration, if its form has no such field.

    Runs of a schedule, of assets and of Airflow's own backfills have configurations of their own.

    Raises:
        ConfigError: the form has no such field.
    """
    run = context.get("dag_run")
    if run is not None and run.run_type.value == DagRunType.MANUAL.value:
        check_fields(run.conf or {}, {*fields, BACKFILL})


def say_waiting(task: BatchOperator, context: Context, somebody: Busy | BackfillOpen) -> None:
    """Say for what a task waits, and what a person can do: in its log, and in the note of its run."""
    fix = somebody.fix
    if isinstance(somebody, BackfillOpen):
        form = backfill_dag_of(task.pipeline)
        fix = f"wait, if a run works on it; otherwise trigger {form} with the mode resume to complete it, or cancel"
    task.log.info("%s\n  fix: %s", somebody.message, fix)
    leave_note(context["ti"], f"{WAITS}{somebody.message}\n  fix: {fix}", task.log)


def cancel(error: TidemillError) -> NoReturn:
    """Let Airflow retry an error that may go away by itself; make the task fail at once on other errors."""
    if error.retryable:
        raise error
    raise AirflowFailException(str(error)) from None
