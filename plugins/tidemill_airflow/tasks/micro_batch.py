"""The task that executes batches."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException
from airflow.utils.types import DagRunType

from tidemill.core.errors import ConfigError, TidemillError, shown
from tidemill.core.repair.selection import OfTimes
from tidemill.inspect.service_levels import missed_after
from tidemill.project.project import Project
from tidemill_airflow.naming import BACKFILL
from tidemill_airflow.tasks.asked import RUN_FIELDS
from tidemill_airflow.tasks.batch_operator import BatchOperator, Turn, check_conf, identity_of, of_backfill
from tidemill_airflow.tasks.execution import RunReport, commits_of, execute_batches
from tidemill_airflow.tasks.reporting import BatchLog
from tidemill_airflow.tasks.runner import Amendment, backfill_state, batch_runner, left_of_interval

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemill.core.protocol.events import Committed


MAX_BATCHES = 100
"""The most batches that one run may execute."""

_NUMBER = re.compile("[0-9]{1,18}")

RECENT_EVENTS = 4 * MAX_BATCHES
"""How many events back a retry looks for commits of its earlier tries. Older commits are not found."""


class MicroBatchOperator(BatchOperator):
    """Plans and executes the next batches of one pipeline in this process, and announces what was committed.

    The last commit decides what to read, not the dates of the run. The exception is a run of Airflow's own backfill: it
    computes again what the log received in the interval. Only whole batches can be computed again, and the batches of
    neighbouring intervals are often the same: a batch that another run of the same backfill has computed again is not
    computed another time. If nothing else is in the interval, the run is skipped and says which run did it. Another
    backfill of Airflow, which has another id, computes the interval again, even if it uses the same runs.

    The task succeeds if it committed a batch. It is skipped if there was nothing to do or another run holds the open
    batch, so that no asset is updated. It fails without a retry if a retry could not help, for example when an audit
    blocks the batch. A retry continues what its earlier tries began. A cleared run finds the commits of its earlier
    tries, and announces those that it has not announced.

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
        check_conf(context, RUN_FIELDS)
        if (turn := self._interval(context)) is not None:
            return turn.take(self, context)
        project = Project.load(self.project)
        watcher = self.batch_log(project)
        try:
            report = self._report(context, project, watcher)
        finally:
            self.batch_id = watcher.claimed_id
        self.log.info("%s", report)
        if not report.commits:
            raise AirflowSkipException(str(report))
        return self.result(context, project, report.commits, watcher.known)

    def _interval(self, context: Context) -> Turn | None:
        """For Airflow's own backfill, the turn that reads the records of the interval again; otherwise None."""
        interval = backfilled_interval(context)
        if interval is None:
            return None
        backfill = backfill_of(context)
        asked = OfTimes(since=interval[0], until=interval[1])

        def amendment(project: Project, identity: str) -> Amendment | None:
            state = backfill_state(project, self.pipeline, identity)
            if state != "none":
                return None if state == "complete" else Amendment(what="resume")
            if backfill is None:
                return Amendment(what="backfill", wanted=asked)
            return left_of_interval(project, self.pipeline, asked, done_by=of_backfill(backfill))

        number = "" if backfill is None else f" {backfill}"
        return Turn(
            amendment=amendment,
            why=f"Airflow's backfill{number} of {interval[0].isoformat()} to {interval[1].isoformat()}",
            most=_whole("max_records", self.max_records),
            may_be_empty=True,
            backfill=backfill,
        )

    def _report(self, context: Context, project: Project, watcher: BatchLog) -> RunReport:
        """Execute the next batches of the log."""
        identity = identity_of(context["ti"])
        max_records, most = _whole("max_records", self.max_records), _whole("max_batches", self.max_batches)
        earlier: tuple[Committed, ...] = ()
        if context["ti"].try_number > 1:
            # A try that committed and then died has announced nothing: the successful try announces its batches too.
            events = [entry.event for entry in project.ledger(self.pipeline).entries(last=RECENT_EVENTS)]
            earlier = commits_of(events, identity)
            watcher.known.learn(events)
        run = batch_runner(project, self.pipeline, identity=identity, max_records=max_records, watcher=watcher)

        def next_batch() -> Committed | None:
            commit = run()
            if commit is not None:
                self.report(commit)
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
    """The interval that Airflow's own backfill wants computed again; None for every other run.

    The run's id does not tell: a backfill may use the runs again that a schedule has made.
    """
    run = context.get("dag_run")
    if run is None or run.run_type.value != DagRunType.BACKFILL_JOB.value:
        return None
    start, end = run.data_interval_start, run.data_interval_end
    return (start, end) if start is not None and end is not None and start < end else None


def backfill_of(context: Context) -> str | None:
    """The name of Airflow's own backfill that the run belongs to; None if the scheduler does not load the plugin."""
    found = (context["dag_run"].conf or {}).get(BACKFILL)
    return found if isinstance(found, str) else None


def _whole(name: str, value: float | str | None) -> int | None:
    """Convert what a template rendered to a whole number of at least one; None and empty text become None."""
    if value is None or value == "":
        return None
    number = 0
    if isinstance(value, str):
        number = int(value) if _NUMBER.fullmatch(value.strip()) else 0
    elif not isinstance(value, bool) and value == value // 1:
        number = int(value)
    if number < 1:
        raise ConfigError(
            f"{name}: expected a whole number of at least 1, found {shown(value)}", fix="trigger the run again"
        )
    return number
