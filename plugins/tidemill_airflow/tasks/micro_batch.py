"""The task that executes batches."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException
from airflow.utils.types import DagRunType

from tidemill.core.errors import ConfigError, TidemillError
from tidemill.core.repair.selection import OfTimes
from tidemill.inspect.service_levels import missed_after
from tidemill.project.project import Project
from tidemill_airflow.tasks.announcing import announce
from tidemill_airflow.tasks.batch_operator import BatchOperator, Turn, identity_of
from tidemill_airflow.tasks.execution import RunReport, commits_of, execute_batches, facts, summary
from tidemill_airflow.tasks.runner import Amendment, backfill_state, batch_runner

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemill.core.protocol.events import Committed


MAX_BATCHES = 100
"""The most batches that one run may execute."""

RECENT_EVENTS = 4 * MAX_BATCHES
"""How many events back a retry looks for commits of its earlier tries. Older commits are not found."""


class MicroBatchOperator(BatchOperator):
    """Plans and executes the next batches of one pipeline in this process, and announces what was committed.

    The last commit decides what to read, not the dates of the run. The exception is a run of Airflow's own backfill: it
    computes again what the log received in the interval. The task succeeds if it committed a batch. It is skipped if
    there was nothing to do or another run holds the open batch, so that no asset is updated. It fails without a retry
    if a retry could not help, for example when an audit blocks the batch. A retry continues what its earlier tries
    began. A cleared run finds the commits of its earlier tries and announces them again.

    Args:
        pipeline: the name of a pipeline of the project.
        project: the folder with tidemill.toml. Without it, the project is found as the `tidemill` command finds it.
        max_records: the most records in each batch; None for the project's limit.
        max_batches: the most batches; the task ends earlier if the log has no more records.
    """

    template_fields = ("max_records", "max_batches")
    ui_color = "#d6eaf0"

    def __init__(
        self,
        *,
        pipeline: str,
        project: str | None = None,
        max_records: int | str | None = None,
        max_batches: int | str = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(pipeline=pipeline, project=project, **kwargs)
        self.max_records = max_records
        self.max_batches = max_batches

    def work(self, context: Context) -> dict[str, Any]:
        """Execute batches until there is nothing to do or the run's limit is reached."""
        if (turn := self._interval(context)) is not None:
            return turn.take(self, context)
        report = self._report(context)
        self.log.info("%s", report)
        if not report.commits:
            raise AirflowSkipException(str(report))
        announce(self.pipeline, report.commits, self.outlets, context["outlet_events"])
        return {"pipeline": self.pipeline, "batches": [facts(commit) for commit in report.commits]}

    def _interval(self, context: Context) -> Turn | None:
        """For Airflow's own backfill, the turn that reads the records of the interval again; otherwise None."""
        interval = backfilled_interval(context)
        if interval is None:
            return None
        asked = Amendment(what="backfill", wanted=OfTimes(since=interval[0], until=interval[1]))

        def amendment(project: Project, identity: str) -> Amendment | None:
            state = backfill_state(project, self.pipeline, identity)
            return None if state == "complete" else Amendment(what="resume") if state == "open" else asked

        return Turn(
            amendment=amendment,
            why=f"Airflow's backfill of {interval[0].isoformat()} to {interval[1].isoformat()}",
            most=_whole("max_records", self.max_records),
            may_be_empty=True,
        )

    def _report(self, context: Context) -> RunReport:
        """Execute the next batches of the log."""
        project, identity = Project.load(self.project), identity_of(context["ti"])
        max_records, most = _whole("max_records", self.max_records), _whole("max_batches", self.max_batches)
        earlier: tuple[Committed, ...] = ()
        if context["ti"].try_number > 1:
            # A try that committed and then died has announced nothing: the successful try announces its batches too.
            entries = project.ledger(self.pipeline).entries(last=RECENT_EVENTS)
            earlier = commits_of((entry.event for entry in entries), identity)
        run = batch_runner(project, self.pipeline, identity=identity, max_records=max_records)

        def next_batch() -> Committed | None:
            commit = run()
            if commit is not None:
                self.log.info("%s", summary(commit))
            return commit

        report = execute_batches(next_batch, most=most or 1, earlier=earlier)
        self._tell_missed(project, report)
        return report

    def _tell_missed(self, project: Project, report: RunReport) -> None:
        """Warn of service levels that are missed after the last commit. Commits are announced whatever happens here."""
        with suppress(TidemillError):
            for commit in report.commits[-1:]:
                for text in missed_after(project.pipeline(self.pipeline), commit):
                    self.log.warning("service level %s", text)


def backfilled_interval(context: Context) -> tuple[datetime, datetime] | None:
    """The interval that Airflow's own backfill wants computed again; None for every other run."""
    run = context.get("dag_run")
    if run is None or DagRunType.from_run_id(run.run_id) is not DagRunType.BACKFILL_JOB:
        return None
    start, end = run.data_interval_start, run.data_interval_end
    return (start, end) if start is not None and end is not None and start < end else None


def _whole(name: str, value: int | str | None) -> int | None:
    """Convert what a template rendered to a whole number of at least one; None and empty text become None."""
    if value is None or value == "":
        return None
    try:
        number = int(value)
    except ValueError:
        number = 0
    if number < 1 or isinstance(value, bool):
        raise ConfigError(f"{name} is a whole number of at least 1, found {value!r}", fix="trigger the run again")
    return number
