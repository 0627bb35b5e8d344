"""The way from a task to a batch: the only module of the plugin that uses Spark, and only when a task runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal

from tidemill.core.history.coverage import plans_of
from tidemill.core.history.index import asked_of
from tidemill.core.log.offsets import MAX_OFFSET
from tidemill.core.plan.amendments import Reason, SideOutput
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Committed, Event
from tidemill.core.repair.selection import OfOffsets, Wanted
from tidemill.core.repair.side_outputs import Selection
from tidemill.core.time.times import duration
from tidemill.project.project import Project

if TYPE_CHECKING:
    from tidemill.ledger.ledger import Ledger
    from tidemill.maintain.maintenance import MaintenanceTask

_RECENT = 5_000


def batch_runner(
    project: Project, pipeline: str, *, identity: str, max_records: int | None
) -> Callable[[], Committed | None]:
    """Return a function that executes the next batch and returns its commit, or None if there is nothing to do.

    All calls share one view of the ledger and, in a local session, one Spark. All tries of a task have the same
    `identity`, so a retry continues its own open batch at once.
    """
    from tidemill.run.loop import Order, run_batches

    order = Order(limit=max_records, most=None)
    return partial(next, run_batches(project, pipeline, order, identity=identity), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What a task does to the past: begin a backfill of `wanted`, continue or cancel one, replay records, or fold."""

    what: Literal["backfill", "resume", "cancel", "quarantine", "late", "fold"]
    wanted: Wanted = field(default_factory=lambda: OfOffsets(since={}, until={}))
    accept_loss: bool = False
    selection: Selection = field(default_factory=Selection)


def amendment_runner(  # noqa: PLR0913  who wants what done to which pipeline, and how
    project: Project, pipeline: str, amendment: Amendment, *, identity: str, why: str, most: int | None
) -> Iterator[Committed]:
    """Execute the batches of an amendment and yield each commit, with the live ones between those of a backfill.

    A retry of the task continues its own open batch at once. The ledger names the task as the requester.
    """
    from tidemill.maintain import state_compaction
    from tidemill.repair import backfill, repair
    from tidemill.repair.job import AmendmentJob

    reason = Reason(by=identity, why=why)
    job = AmendmentJob(project=project, pipeline=pipeline, reason=reason, most=most, identity=identity)
    match amendment.what:
        case "backfill":
            return backfill.backfill(job, amendment.wanted, accept_loss=amendment.accept_loss)
        case "resume":
            return backfill.resume(job)
        case "cancel":
            return backfill.cancel(job)
        case "fold":
            return state_compaction.fold(job)
        case other:
            # A record that failed again in an earlier turn is not tried twice.
            return repair.repair(job, SideOutput(other), amendment.selection, before=job.first_asked)


def backfill_state(project: Project, pipeline: str, identity: str) -> Literal["none", "open", "complete"]:
    """The state of the backfill that this task requested in an earlier try or turn."""
    ledger = project.ledger(pipeline)
    job = ledger.view().position.backfill
    if job is not None and job.by == identity:
        return "open"
    past = ledger.past()
    jobs = [b.job for b in past.asked(identity) if b.job is not None]
    if any(job.complete for job in jobs):
        return "complete"
    asked = (asked_of(plan) for plan in plans_of(past.events) if plan.job is not None)
    begun = jobs or any(reason is not None and reason.by == identity for reason in asked)
    return "open" if begun and ledger.view().open_batch is not None else "none"


def events_of(ledger: Ledger, identity: str) -> Iterator[Event]:
    """Return events that include those of all turns of a task.

    They begin with the first batch that the task requested. A task that requested none, because it continued another's
    job or folds state, has its events among the newest.
    """
    first = next(ledger.past().asked(identity), None)
    if first is None:
        return (entry.event for entry in ledger.entries(last=_RECENT))
    return (entry.event for entry in ledger.of_batches(BatchRange(first.batch_id, MAX_OFFSET)))


def tasks_of(project: Project, pipeline: str, keep: str | None) -> Iterator[MaintenanceTask]:
    """Do the maintenance tasks and yield each. `keep` is how far back one can go afterwards; None for the project's."""
    from tidemill.maintain.maintenance import maintain

    period = project.settings.keep if keep is None else duration(keep)
    return maintain(project, pipeline, keep=period, now=datetime.now(UTC))
