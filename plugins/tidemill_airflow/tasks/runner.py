"""The way from a task to a batch: the only module of the plugin that uses Spark, and only when a task runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from tidemill.core.errors import AmendmentError, NothingRead
from tidemill.core.history.coverage import plans_of
from tidemill.core.history.index import asked_of
from tidemill.core.log.offsets import MAX_OFFSET
from tidemill.core.plan.amendments import Reason, SideOutput, count
from tidemill.core.plan.slices import BatchRange
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Committed, Event, Planned
from tidemill.core.repair.selection import OfOffsets, OfTimes, Wanted
from tidemill.core.repair.side_outputs import Selection
from tidemill.project.project import Project
from tidemill_airflow.naming import AIRFLOW
from tidemill_airflow.tasks.execution import commits_of

if TYPE_CHECKING:
    from tidemill.core.plan.backfill_job import Backfill
    from tidemill.ledger.ledger import Ledger
    from tidemill.maintain.task import MaintenanceTask
    from tidemill.run.watching import Watcher

_RECENT = 5_000


def batch_runner(
    project: Project, pipeline: str, *, identity: str, max_records: int | None, watcher: Watcher
) -> Callable[[], Committed | None]:
    """Return a function that executes the next batch and returns its commit, or None if there is nothing to do.

    All calls share one view of the ledger and, in a local session, one Spark. All tries of a task have the same
    `identity`, so a retry continues its own open batch at once. `watcher` is told how far each batch is.
    """
    from tidemill.run.loop import Order, run_batches

    order = Order(limit=max_records, most=None)
    return partial(next, run_batches(project, pipeline, order, identity=identity, watcher=watcher), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """What a task does to the past: begin a backfill of `wanted`, continue or cancel one, replay records, or fold.

    `asked` is the number of records that were asked for, if `wanted` is only what is left of them.
    """

    what: Literal["backfill", "resume", "cancel", "quarantine", "late", "fold"]
    wanted: Wanted = field(default_factory=lambda: OfOffsets(since={}, until={}))
    asked: int | None = None
    accept_loss: bool = False
    selection: Selection = field(default_factory=Selection)


def amendment_runner(  # noqa: PLR0913  who wants what done to which pipeline, and how
    project: Project,
    pipeline: str,
    amendment: Amendment,
    *,
    identity: str,
    why: str,
    most: int | None,
    watcher: Watcher,
) -> Iterator[Committed]:
    """Execute the batches of an amendment and yield each commit, with the live ones between those of a backfill.

    A retry of the task continues its own open batch at once. The ledger names the task as the requester. `watcher` is
    told how far each batch is.
    """
    from tidemill.maintain import state_compaction
    from tidemill.repair import backfill, repair
    from tidemill.repair.job import AmendmentJob

    reason = Reason(by=identity, why=why)
    job = AmendmentJob(project=project, pipeline=pipeline, reason=reason, most=most, identity=identity, watcher=watcher)
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
    """The state of the backfill that this task requested in an earlier try or turn.

    Raises:
        AmendmentError: somebody has given it up.
    """
    ledger = project.ledger(pipeline)
    job = ledger.view().position.backfill
    if job is not None and job.by == identity:
        return "open"
    past = ledger.past()
    jobs = {b.batch_id: b.job for b in past.asked(identity) if b.job is not None}
    if last := max((batch_id for batch_id, job in jobs.items() if job.complete), default=None):
        _check_not_given_up(ledger, pipeline, last)
        return "complete"
    asked = (asked_of(plan) for plan in plans_of(past.events) if plan.job is not None)
    begun = jobs or any(reason is not None and reason.by == identity for reason in asked)
    return "open" if begun and ledger.view().open_batch is not None else "none"


def has_begun(ledger: Ledger, identity: str) -> bool:
    """Whether an earlier try or turn of this task has planned a batch of what it asks for."""
    past = ledger.past()
    asked = (asked_of(plan) for plan in plans_of(past.events))
    return any(past.asked(identity)) or any(reason is not None and reason.by == identity for reason in asked)


def _check_not_given_up(ledger: Ledger, pipeline: str, last: int) -> None:
    [plan] = plans_of(entry.event for entry in ledger.of_batches(BatchRange(last, last + 1), Planned))
    if plan.job is not None and not plan.job.publishes:
        raise AmendmentError(
            f"{pipeline}: the backfill of this run, begun with batch {plan.job.since}, was given up; nothing of it is "
            "seen",
            fix="trigger it again, if that was not meant",
        )


def of_another(ledger: Ledger, job: Backfill, identity: str) -> bool:
    """Whether the open backfill began after a task has worked on one: it is not the one that the task is about."""
    own = [c.batch_id for c in commits_of(events_of(ledger, identity), identity) if c.kind is Kind.BACKFILL]
    return bool(own) and job.since > max(own)


def left_of_interval(project: Project, pipeline: str, interval: OfTimes, *, done_by: str) -> Amendment:
    """The backfill of what is left of an interval.

    Left is what no task of Airflow has computed again whose identity ends with `done_by`.
    What such a task has computed counts only as long as it is what readers see: after a rewind, or when others have
    computed it again since, it is part of what is left.

    Raises:
        NothingRead: nothing is left, or no batch has read a record that the log took in the interval.
    """
    from tidemill.core.history.coverage import united
    from tidemill.repair.job import AmendmentJob
    from tidemill.repair.selection import wanted_covers

    job = AmendmentJob(project=project, pipeline=pipeline, reason=Reason(by=done_by))
    asked, covers = wanted_covers(job, job.ledger.view(), interval)
    by = {c.batch_id: c.batch.asked.by for c in covers if c.batch.asked is not None and c.batch.job is not None}
    ours = {batch_id: who for batch_id, who in by.items() if who.startswith(AIRFLOW) and who.endswith(done_by)}
    ranges = united(c.ranges for c in covers if c.batch_id not in ours)
    places = {r.topic_partition for items in ranges.values() for r in items}
    if not places:
        runs = ", ".join(dict.fromkeys(who.split("/")[1] for who in ours.values()))
        raise NothingRead(f"done by {runs}: the same backfill has computed all batches of this interval again")
    left = [r for items in ranges.values() for r in items]
    since = {tp: min(r.from_offset for r in left if r.topic_partition == tp) for tp in places}
    until = {tp: max(r.until_offset for r in left if r.topic_partition == tp) for tp in places}
    return Amendment(what="backfill", wanted=OfOffsets(since=since, until=until), asked=count(asked))


def events_of(ledger: Ledger, identity: str) -> Iterator[Event]:
    """Return events that include those of all turns of a task.

    They begin with the first batch that the task requested. A task that requested none, because it continued another's
    job or folds state, has its events among the newest.
    """
    first = next(ledger.past().asked(identity), None)
    if first is None:
        return (entry.event for entry in ledger.entries(last=_RECENT))
    return (entry.event for entry in ledger.of_batches(BatchRange(first.batch_id, MAX_OFFSET)))


def tasks_of(project: Project, pipeline: str, keep: timedelta | None) -> Iterator[MaintenanceTask]:
    """Do the maintenance tasks and yield each. `keep` is how far back one can go afterwards; None for the project's."""
    from tidemill.maintain.maintenance import maintain

    return maintain(project, pipeline, keep=project.settings.keep if keep is None else keep, now=datetime.now(UTC))
