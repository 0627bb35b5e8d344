"""Plans of amendments: pure functions of the last position, as in `tidemill.core.plan.planning` for live batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tidemill.core.bind.flow import Flow
from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.change.joining_tables import completed
from tidemill.core.change.redefinition import redefined
from tidemill.core.errors import AmendmentError, BackfillOpen, printable
from tidemill.core.history.coverage import Cover, batches_of, panes_of
from tidemill.core.history.past import Past
from tidemill.core.identity.semantics import SEMANTICS
from tidemill.core.log.packed_offsets import packed
from tidemill.core.plan.amendments import Fold, Ranges, Repair, Rewind, Switch, count, split
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges, in_both
from tidemill.core.plan.work import BackfillStep, Reading, Work
from tidemill.core.protocol.view import View
from tidemill.core.repair.whole_windows import whole_of
from tidemill.core.time.spans import PaneSpan


def plan_reading(flow: Flow, view: View, ranges: Ranges, *, clock: datetime) -> BatchPlan:
    """A plan that only reads, even records of forgotten windows; it is never stored in a ledger."""
    plan = _amendment(flow, view, Reading(reads=ranges), clock)
    return replace(plan, position=replace(view.position, forgotten_until=None))


def backfill_of(flow: Flow, view: View, past: Past, covers: tuple[Cover, ...], ranges: Ranges) -> Backfill:
    """The job that reads `ranges` again; the batches `covers` have read them. Its `by` is empty until somebody asks.

    Raises:
        BackfillOpen: another job is not complete.
    """
    if (job := view.position.backfill) is not None:
        raise BackfillOpen(
            f"the backfill of {printable(job.by)}, begun with batch {job.since}, has {count(job.left):,} records left",
            fix="complete it with --resume, or give it up with --cancel",
        )
    return Backfill(
        since=view.last_batch_id + 1,
        left=ranges,
        supersedes=batches_of(covers),
        panes=panes_of(covers),
        by="",
        whole=whole_of(flow, view.position, past, covers),
        completes=completed(flow, view.position, past, covers, ranges),
    )


def plan_backfill(flow: Flow, view: View, job: Backfill, *, clock: datetime, most: int) -> BatchPlan:
    """The next batch of a job, with at most `most` offsets; the last batch publishes.

    A job that computes tables of firings is one batch, whatever `most` says.

    Raises:
        Incompatible: committed state was built by other keys, windows or aggregates.
    """
    check_compatibility(flow, view)
    redefined(flow, view.position)
    now, left = split(job.left, most if job.replay is None else None)
    return _amendment(flow, view, BackfillStep(job=replace(job, left=left), reads=now), clock)


def check_can_give_up(flow: Flow, view: View) -> None:
    """Refuse to give a job up whose last batch is open: an open batch is always completed, and this one publishes.

    Raises:
        AmendmentError: it is open.
    """
    opened = view.open_batch
    if opened is not None and opened.plan.job is not None and opened.plan.job.publishes:
        raise AmendmentError(
            f"{flow.name}: batch {opened.plan.batch_id}, the last one of the backfill, has begun and may have "
            "published something; nothing was dropped",
            fix="complete it with --resume; to take it back then, say `tidemill rewind "
            f"{flow.name} --to {opened.plan.position.batch_id}`",
        )


def plan_giving_up(flow: Flow, view: View, *, clock: datetime) -> BatchPlan:
    """A batch that gives up the open job; nothing of the job was ever visible.

    Raises:
        AmendmentError: there is no job.
    """
    job = view.position.backfill
    if job is None:
        raise AmendmentError(f"{flow.name}: no backfill is open", fix="`tidemill status` shows one that is")
    nothing = replace(job, left={}, supersedes=(), slices={}, panes={}, completes=None)
    return _amendment(flow, view, BackfillStep(job=nothing, reads={}), clock)


def plan_repair(flow: Flow, view: View, repair: Repair, records: Ranges, *, clock: datetime) -> BatchPlan:
    """The batch that processes records once more.

    Raises:
        BackfillOpen: a backfill is not complete, and may read the same records.
        AmendmentError: some records belong to numbers that had another meaning, and `repair.mixed` is not set.
        Incompatible: committed state was built by other keys, windows or aggregates.
    """
    check_compatibility(flow, view)
    redefined(flow, view.position)
    if view.position.backfill is not None:
        raise BackfillOpen(
            f"{flow.name}: a backfill is not complete, and may read the same records",
            fix="complete it with `tidemill backfill --resume`, or give it up with --cancel",
        )
    if not repair.mixed:
        _check_meaning(flow, view, repair)
    return _amendment(flow, view, replace(repair, records=packed(records)), clock)


def _check_meaning(flow: Flow, view: View, repair: Repair) -> None:
    """Refuse records from before the meaning changed: they would be added to numbers with the old meaning."""
    tables = [repair.only] if repair.only is not None else [sink.table for sink in flow.sinks]
    for table in tables:
        first = view.position.first_of_meaning(table)
        before = in_both(repair.batches, [BatchRange(1, first)]) if first > 1 else ()
        if before:
            raise AmendmentError(
                f"{flow.name}: {', '.join(map(str, before))} put some of these records aside before batch {first}, "
                f"which changed what the numbers of {table} mean: windows from before would mix both meanings",
                fix="compute what those batches read by today's declaration, with `tidemill backfill "
                f"{flow.name} --from-offsets ... --to-offsets ...`, which takes rejected records along; leave their "
                "batches out with --batch; or say --mixed: they count by today's declaration",
            )


def plan_rewind(flow: Flow, view: View, rewind: Rewind, *, clock: datetime) -> BatchPlan:
    """The batch that takes everything back to an earlier position."""
    return _amendment(flow, view, rewind, clock)


def plan_switch(flow: Flow, view: View, switch: Switch, *, after: int, clock: datetime) -> BatchPlan:
    """The batch that makes a generation the published one.

    Its id is greater than `after`, the last batch of the generation that it replaces.
    """
    plan = _amendment(flow, view, switch, clock)
    return replace(plan, batch_id=max(plan.batch_id, after + 1))


def plan_fold(flow: Flow, view: View, covers: tuple[Cover, ...], *, clock: datetime) -> BatchPlan:
    """The batch that joins the slices of `covers` into one.

    Raises:
        Incompatible: committed state was built by other keys, windows or aggregates.
    """
    check_compatibility(flow, view)
    panes = {table: PaneSpan(spans[0].first, max(s.last for s in spans)) for table, spans in panes_of(covers).items()}
    fold = Fold(batches=batch_ranges(c.batch_id for c in covers), panes=panes)
    return _amendment(flow, view, fold, clock)


def _amendment(flow: Flow, view: View, work: Work, clock: datetime) -> BatchPlan:
    """A plan with what all kinds of amendments have in common."""
    return BatchPlan(
        pipeline=flow.key,
        batch_id=view.last_batch_id + 1,
        clock=clock,
        position=view.position,
        logical_hash=flow.logical_hash,
        work=work,
        semantics=SEMANTICS,
    )
