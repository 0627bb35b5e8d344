"""The log of a task that executes batches, and the note that it leaves at its run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from tidemill.core.contract.verdict import Verdict
from tidemill.core.errors import LogError
from tidemill.core.plan.amendments import Ranges, count
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange
from tidemill.project.project import Project
from tidemill.run.watching import Watcher
from tidemill_airflow.naming import NOTE
from tidemill_airflow.tasks.facts import Known, Widened, left_after, opening

_OTHERS = ("alembic", "great_expectations", "py4j", "pyspark", "botocore", "deltalake", "urllib3", "asyncio")
"""Loggers of libraries, whose messages below a warning tell nothing about a batch."""

_PREPARING, _SHORT = ("claim", "spark"), 0.1
"""Steps before the work begins get a line only if they took at least so many seconds."""


class BatchLog(Watcher):
    """Writes a line when a batch begins, and one for each step with its seconds. Remembers what it was told.

    `wanted` is the number of records that a person or Airflow asked for; None if it is what a backfill is told to read.
    """

    def __init__(self, project: Project, log: Any) -> None:
        self.known = Known()
        self.claimed_id: int | None = None
        self.wanted: int | None = None
        self._project, self._log = project, log

    def widened(self, wanted: Ranges, reads: Ranges, batches: tuple[BatchRange, ...]) -> None:
        """Say what is asked for and what is read, once for a job."""
        asked = count(wanted) if self.wanted is None else self.wanted
        found = Widened(wanted=asked, reads=count(reads), batches=batches)
        if found != self.known.widened:
            self.known.widened = found
            self._log.info("%s", found)

    def claimed(self, plan: BatchPlan, attempt: int) -> None:
        """Say what the batch reads, and how much it leaves in the log."""
        self.claimed_id = plan.batch_id
        self.known.plans[plan.batch_id] = plan
        lag = self._lag(plan)
        if lag is not None:
            self.known.lags[plan.batch_id] = lag
        self._log.info("%s", opening(plan, attempt, lag))

    def audited(self, batch_id: int, verdict: Verdict) -> None:
        """Remember the verdict."""
        self.known.verdicts[batch_id] = verdict

    def step_done(self, batch_id: int | None, step: str, seconds: float) -> None:
        """Say how long a step took."""
        if step not in _PREPARING or seconds >= _SHORT:
            self._log.info("%s%s %.2f s", self._of(batch_id), step, seconds)

    def step_failed(self, batch_id: int | None, step: str, seconds: float) -> None:
        """Say which step failed. What is wrong, and how to fix it, is said by the error."""
        self._log.info("%s%s ended after %.2f s without a result", self._of(batch_id), step, seconds)

    def _of(self, batch_id: int | None) -> str:
        return "" if batch_id is None else f"batch {batch_id}: "

    def _lag(self, plan: BatchPlan) -> Mapping[str, int] | None:
        """How many records wait after the batch; None if the log does not answer: the batch itself will say so."""
        ends: dict[str, dict[int, int]] = {}
        with suppress(LogError):
            log = self._project.log()
            for topic in plan.known_topics:
                ends[topic] = {p: held.until_offset for p, held in log.bounds(topic).items()}
            return left_after(plan, ends)
        return None


@contextmanager
def without_chatter() -> Iterator[None]:
    """Keep messages of libraries out of the log, unless they warn, or the log shows messages for debugging.

    A logger whose level somebody has set is left alone.
    """
    quiet = [] if logging.getLogger().isEnabledFor(logging.DEBUG) else [logging.getLogger(name) for name in _OTHERS]
    quiet = [logger for logger in quiet if logger.level == logging.NOTSET]
    for logger in quiet:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger in quiet:
            logger.setLevel(logging.NOTSET)


def leave_note(ti: Any, text: str, log: Any) -> None:
    """Leave the result for the scheduler, which writes it at the run. A note that cannot be left fails no batch."""
    try:
        ti.xcom_push(key=NOTE, value=text)
    except Exception as error:
        log.warning("the run gets no note: %s", error)
