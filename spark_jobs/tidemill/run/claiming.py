"""Step 1 of a batch: continue the open batch or plan the next one, and claim it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidemill.core.bind.flow import Flow
from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.change.foreign_batches import given_up, refused
from tidemill.core.change.redefinition import redefined
from tidemill.core.contract.verdict import blocked
from tidemill.core.declare.guarantees import Guarantee
from tidemill.core.errors import Fenced, LedgerDamaged, TableDamaged
from tidemill.core.log.offsets import TopicPartition
from tidemill.core.log.scan import Scan
from tidemill.core.plan.alignment import Look
from tidemill.core.plan.amendments import Reason, Redefined, Repair
from tidemill.core.plan.generation_start import begun_at
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.planning import plan_batch
from tidemill.core.plan.position import Gone
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.events import Audited, Cancelled, Claimed, Decided, Decision, Executor, Planned
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.leases import Holder
from tidemill.core.protocol.transitions import check_current, check_takeover
from tidemill.core.protocol.view import Fate, OpenBatch, View
from tidemill.core.repair.state_retention import check_lateness
from tidemill.ledger.lease import Lease
from tidemill.ledger.ledger import Ledger
from tidemill.ledger.process import is_gone
from tidemill.log.interface import Log
from tidemill.log.pipeline_topics import bounds_for, to_be_read
from tidemill.run.sources import Sources, Upstream, no_upstream
from tidemill.run.watching import Watcher

Check = Callable[[BatchPlan, OpenBatch | None], None]
"""Called with a plan, and with the open batch if the plan is its plan. Raises if the tables do not fit the ledger."""

Accept = Callable[[View], None]
"""Called with the ledger's view before a new plan is written. Raises if the declaration cannot be run."""

_RACES = 5

Planner = Callable[[View], BatchPlan | None]
"""Returns the plan that follows the ledger's view, or None if there is nothing to do."""


def _unchecked(_: BatchPlan, __: OpenBatch | None) -> None:
    """Used where there are no tables to check."""


def _accepted(_: View) -> None:
    """Used where the declaration needs no check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Who asks for a batch, when, and how much it may read. `drain` says that the input has ended.

    If no batch is open, `planner` plans the next one; without it, the batch reads the next offsets. `begin` gives the
    first offsets of a pipeline that has read nothing yet; partitions it leaves out begin at their start, and without
    `begin` the declaration decides. Partitions in `silent` no longer hold the watermark back once they are read.
    Partitions in `gone` are left out from now on. `from_now` is a person's decision that a change in the meaning of
    numbers applies from the next batch on. `look` reads records before they are planned, where a pipeline has a
    `max_drift`. `watcher` is told how far the batch is.
    """

    executor: Executor
    clock: datetime
    limit: ReadLimit = field(default_factory=ReadLimit)
    drain: bool = False
    planner: Planner | None = None
    begin: Mapping[TopicPartition, int] | None = None
    silent: Collection[TopicPartition] = ()
    gone: tuple[Gone, ...] = ()
    from_now: Reason | None = None
    look: Look | None = None
    watcher: Watcher = field(default_factory=Watcher)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to execute a plan, until someone claims a newer attempt. `audited` is a verdict that still stands.

    `scans` say how to read each topic in the plan; all of these records existed when the batch was claimed. `decided`
    is a person's decision about a blocking verdict. `given_up` means that the records are not read again, because the
    pipeline counts records at most once.
    """

    plan: BatchPlan
    attempt: int
    scans: Mapping[str, Scan]
    audited: Audited | None = None
    decided: Decided | None = None
    given_up: bool = False

    @property
    def accepted(self) -> bool:
        """Whether a person decided to publish the rows although the audit blocked them."""
        return self.decided is not None and self.decided.decision is Decision.ACCEPT

    @property
    def diverted(self) -> str | None:
        """Why all records go to quarantine; None if they do not."""
        if self.decided is None or self.decided.decision is not Decision.DIVERT:
            return None
        return f"batch diverted by {self.decided.by}: {self.decided.why}"


def claim_batch(  # noqa: PLR0913, PLR0917  what a claim needs
    flow: Flow,
    ledger: Ledger,
    sources: Sources,
    request: Request,
    check: Check = _unchecked,
    lease: Lease | None = None,
    accept: Accept = _accepted,
) -> Claim | None:
    """Claim the open batch, or plan and claim a new one; None if there is nothing to do.

    `check` is called before a plan or a claim is written, `accept` before a new plan is written. `lease` is held from
    the claim on, and the caller must release it. Without a lease, others judge the claim by its age.

    Raises:
        Busy: another run holds the open batch.
        AuditBlocked: the audit blocked the open batch, and nothing has changed since.
        Incompatible: the open batch may be partly published, and another declaration planned it.
        LogError: the log does not hold what comes next.
        LedgerDamaged, TableDamaged: ledger and tables do not fit each other.
    """
    for _ in range(_RACES):
        with boundary("ledger", 0):
            view = ledger.view()
        check_current(view)
        try:
            if view.open_batch is not None:
                claim = _continue(flow, ledger, sources, view.open_batch, request, check, lease)
            else:
                plan = _planned(flow, sources, view, request)
                if plan is None:
                    return None
                accept(view)
                claim = _open(ledger, plan, _scans(sources, plan), request, check, lease)
        except (LedgerDamaged, TableDamaged):
            # The error may only mean that another run has written the table meanwhile.
            if ledger.view() == view:
                raise
            continue
        if claim is not None:
            return claim
    raise Fenced(f"{flow.name}: another run was faster {_RACES} times", fix="start one run of a pipeline at a time")


def _planned(flow: Flow, sources: Sources, view: View, request: Request) -> BatchPlan | None:
    if request.planner is not None:
        return request.planner(view)
    return next_plan(flow, sources.log, view, request, sources.upstream)


def next_plan(flow: Flow, log: Log, view: View, request: Request, upstream: Upstream = no_upstream) -> BatchPlan | None:
    """Return the plan that would follow `view`, or None if there is nothing to do. Writes nothing.

    `upstream` gives the watermarks of pipelines that send what this one reads.

    Raises:
        Incompatible: other keys, windows or aggregates built the committed state, or the meaning of numbers would
            change.
        LogError: the log does not hold what comes next.
    """
    change = change_of(flow, view, request.from_now)
    batch_id = view.last_batch_id + 1
    # Before the log is asked: it has all that was sent until then.
    told = {s.name: upstream(s.watermark_of) for s in flow.sources if s.watermark_of is not None}
    with boundary("bounds", batch_id):
        flow = to_be_read(flow, log, view.position)
        bounds = bounds_for(flow, log, view.position)
    if request.begin is not None and not view.position.topics:
        flow, bounds = begun_at(flow, bounds, request.begin)
    return plan_batch(
        flow,
        view.position,
        bounds,
        batch_id=batch_id,
        clock=request.clock,
        limit=request.limit,
        drain=request.drain,
        silent=request.silent,
        gone=request.gone,
        redefined=change,
        told={source.topic: told[source.name] for source in flow.inputs if source.name in told},
        look=request.look,
    )


def change_of(flow: Flow, view: View, decided: Reason | None = None) -> Redefined | None:
    """Return what the next batch changes in the meaning of published numbers, as `decided`; None if nothing changes.

    Raises:
        Incompatible: other keys, windows or aggregates built the committed state, or the meaning of numbers would
            change and nobody decided.
        BackfillOpen: someone decided while a backfill is incomplete, whose batches must all mean the same.
    """
    check_compatibility(flow, view)
    check_lateness(flow, view.position)
    return redefined(flow, view.position, decided)


def _scans(sources: Sources, plan: BatchPlan) -> Mapping[str, Scan]:
    with boundary("scan", plan.batch_id):
        if isinstance(plan.work, Repair):
            return sources.side_tables.scans(plan.work, plan.reads)
        return {name: sources.log.scan(plan.topic_id(name), ranges) for name, ranges in plan.reads.items()}


def _open(  # noqa: PLR0913, PLR0917  what a claim needs
    ledger: Ledger, plan: BatchPlan, scans: Mapping[str, Scan], request: Request, check: Check, lease: Lease | None
) -> Claim | None:
    try:
        with boundary("planned", plan.batch_id):
            check(plan, None)
            planned = Planned(plan=plan, executor=request.executor, at=request.clock, lease=_held(lease))
            ledger.append(lambda _: planned)
    except Fenced:
        return None
    return Claim(plan=plan, attempt=1, scans=scans)


def _continue(  # noqa: PLR0913, PLR0917  what a claim needs
    flow: Flow,
    ledger: Ledger,
    sources: Sources,
    batch: OpenBatch,
    request: Request,
    check: Check,
    lease: Lease | None,
) -> Claim | None:
    """Claim the open batch; None if the ledger must be read again."""
    check_takeover(
        batch,
        request.executor,
        clock=request.clock,
        takeover_after=flow.spec.takeover_after,
        holder=_holder(batch, request.executor, lease),
    )
    plan, fate = batch.plan, batch.fate(*flow.hashes)
    if fate is Fate.REFUSED:
        raise refused(flow, plan)
    if fate is Fate.BLOCKED and batch.audited is not None:
        raise blocked(flow.name, plan.batch_id, batch.audited.verdict)
    attempt, scans = batch.attempt + 1, {} if fate is Fate.CANCELLED else _scans(sources, plan)
    try:
        with boundary("claimed", plan.batch_id):
            check(plan, batch)
            _append_claim(ledger, batch, request, lease)
        if fate is Fate.CANCELLED:
            _cancel(ledger, plan, attempt, request.clock)
            return None
    except Fenced:
        return None
    given_up = plan.live is not None and flow.spec.guarantee is Guarantee.AT_MOST_ONCE
    return Claim(
        plan=plan, attempt=attempt, scans=scans, audited=batch.audited, decided=batch.decided, given_up=given_up
    )


def _append_claim(ledger: Ledger, batch: OpenBatch, request: Request, lease: Lease | None) -> None:
    claimed = Claimed(
        batch_id=batch.plan.batch_id,
        attempt=batch.attempt + 1,
        executor=request.executor,
        at=request.clock,
        lease=_held(lease),
    )
    ledger.append(lambda _: claimed)
    if lease is not None:
        lease.forget(batch.lease)


def _held(lease: Lease | None) -> str | None:
    return None if lease is None else lease.hold()


def _holder(batch: OpenBatch, executor: Executor, lease: Lease | None) -> Holder:
    """What is known about the holder of the open batch. Its lease is read only if nothing else can tell."""
    if batch.executor.identity == executor.identity or is_gone(batch.executor):
        return Holder.STOPPED
    return Holder.UNKNOWN if lease is None else lease.look(batch)


def _cancel(ledger: Ledger, plan: BatchPlan, attempt: int, at: datetime) -> None:
    cancelled = Cancelled(batch_id=plan.batch_id, attempt=attempt, reason=given_up(plan), at=at)
    with boundary("cancelled", plan.batch_id):
        ledger.append(lambda _: cancelled)
