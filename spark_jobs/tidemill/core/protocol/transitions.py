"""The commit protocol as pure transitions: which event may follow in a ledger.

1. A run reads the ledger. An open batch is continued, or left alone; only without one is a batch planned.
2. The plan is appended before any work starts, and read back: if another plan won, that one is executed.
3. Whoever executes a batch holds a claim, numbered 1, 2, 3, ...; the newest claim wins, and is renewed while it works.
4. Rows of state carry batch and attempt, and are seen by nobody yet.
5. Staged rows are audited; the verdict is appended. One that blocks holds the pipeline here, until a person decides.
6. Published tables are written, each with the batch as its transaction: once, and never by an older batch.
7. One row is appended: the commit. From now on offsets, watermark and state of the batch count.
8. An append holds only while nothing was appended since the ledger was read; otherwise it is checked again.
9. A claim that is not the newest is refused at every append: the older attempt is fenced, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from tidemill.core.errors import Busy, Fenced, LedgerDamaged
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.codec import fingerprint
from tidemill.core.protocol.events import (
    Audited,
    Cancelled,
    Claimed,
    Committed,
    Decided,
    Decision,
    Event,
    Executor,
    Forgotten,
    Planned,
    Superseded,
)
from tidemill.core.protocol.leases import Holder
from tidemill.core.protocol.tiling import check_tiling
from tidemill.core.protocol.view import OpenBatch, View
from tidemill.core.time.times import show_clock, show_duration


def fold(events: Iterable[Event], start: View | None = None) -> View:
    """The view after all events, in order.

    Raises:
        LedgerDamaged: the events could not have been appended in this order.
    """
    view = start or View()
    for event in events:
        try:
            view = apply(view, event)
        except Fenced as error:
            raise LedgerDamaged(f"the ledger contradicts itself: {error.message}") from error
    return view


def apply(view: View, event: Event) -> View:
    """The view after one more event.

    Raises:
        Fenced: the event may not follow, because another plan, a newer claim or the commit came first.
    """
    check_current(view)
    match event:
        case Planned():
            return _planned(view, event)
        case Claimed():
            return replace(view, open_batch=_claimed(_open(view, event.batch_id, event.attempt - 1), event))
        case Audited():
            return replace(view, open_batch=replace(_open(view, event.batch_id, event.attempt), audited=event))
        case Committed():
            return _committed(view, event)
        case Cancelled():
            return _cancelled(view, event)
        case Decided():
            return _decided(view, event)
        case Superseded():
            return _superseded(view, event)
        case Forgotten():
            return _forgotten(view, event)
        case _:
            assert_never(event)


def check_current(view: View) -> None:
    """Refuse every event once another generation has taken over.

    Raises:
        Fenced: another generation has taken over.
    """
    if view.superseded is not None:
        raise Fenced(
            f"generation {view.superseded.generation} has taken over, by {view.superseded.by}: nothing follows here",
            fix="start again: a new run finds that generation; if it does not, `tidemill rebuild` was not completed",
        )


def _superseded(view: View, event: Superseded) -> View:
    # An open batch then never commits: the next generation reads its offsets, and fences what it published.
    return replace(view, superseded=event)


def _forgotten(view: View, event: Forgotten) -> View:
    position = view.position
    if view.open_batch is not None or position.backfill is not None:
        what = "a backfill" if view.open_batch is None else f"batch {view.open_batch.plan.batch_id}"
        raise Fenced(f"{what} is open, and may need the state that would be forgotten")
    if position.forgotten_until is not None and event.until < position.forgotten_until:
        raise Fenced(f"the state of windows until {position.forgotten_until} is removed already, found {event.until}")
    return replace(view, position=position.forgetting(event.until))


def _planned(view: View, event: Planned) -> View:
    if view.open_batch is not None:
        raise Fenced(f"batch {view.open_batch.plan.batch_id} is open: another plan won")
    plan = event.plan
    follows = plan.batch_id == view.last_batch_id + 1 or (
        plan.kind is Kind.SWITCH and plan.batch_id > view.last_batch_id
    )
    if not follows or plan.position != view.position:
        raise Fenced(f"the plan of batch {plan.batch_id} starts from a position that is not the last: another run won")
    opened = OpenBatch(plan=plan, attempt=1, executor=event.executor, claimed_at=event.at, lease=event.lease)
    return replace(view, last_batch_id=plan.batch_id, open_batch=opened)


def _claimed(batch: OpenBatch, event: Claimed) -> OpenBatch:
    return replace(batch, attempt=event.attempt, executor=event.executor, claimed_at=event.at, lease=event.lease)


def _committed(view: View, event: Committed) -> View:
    open_batch = _open(view, event.batch_id, event.attempt)
    if not open_batch.may_be_published:
        raise Fenced(f"batch {event.batch_id} has no verdict that lets it commit")
    if event.plan_hash != fingerprint(open_batch.plan):
        raise Fenced(f"batch {event.batch_id} was executed with another plan than the ledger holds")
    check_tiling(open_batch.plan, event)
    return replace(view, position=event.position, open_batch=None, last_commit=event)


def _cancelled(view: View, event: Cancelled) -> View:
    open_batch = _open(view, event.batch_id, event.attempt)
    if open_batch.may_be_published:
        raise Fenced(f"batch {event.batch_id} may be published in part: it must be completed, not cancelled")
    return replace(view, open_batch=None)


def _decided(view: View, event: Decided) -> View:
    open_batch = _open(view, event.batch_id, event.attempt)
    if not open_batch.is_blocked:
        raise Fenced(f"batch {event.batch_id} is not blocked by its audit: there is nothing to decide")
    # Only an accepted verdict stays valid; otherwise the batch is audited again.
    audited = open_batch.audited if event.decision is Decision.ACCEPT else None
    return replace(view, open_batch=replace(open_batch, audited=audited, decided=event))


def _open(view: View, batch_id: int, attempt: int) -> OpenBatch:
    batch = view.open_batch
    if batch is None or batch.plan.batch_id != batch_id:
        at = f"batch {batch.plan.batch_id} is open" if batch else f"batch {view.last_batch_id} is finished"
        raise Fenced(f"batch {batch_id} is not open any more: {at}; nothing of this attempt counts")
    if batch.attempt != attempt:
        raise Fenced(
            f"attempt {attempt} at batch {batch_id} is fenced: {batch.executor.identity} holds attempt "
            f"{batch.attempt} since {show_clock(batch.claimed_at)}; nothing of this attempt counts"
        )
    return batch


def check_takeover(
    batch: OpenBatch, executor: Executor, *, clock: datetime, takeover_after: timedelta, holder: Holder
) -> None:
    """Check that `executor` may continue a batch that another process claimed.

    It may at once if it is the same task, or if the holder has stopped. A claim without a lease, from an older version
    of Tidemill, counts as abandoned once it is older than `takeover_after`.

    Raises:
        Busy: it may not continue the batch yet.
    """
    abandoned = holder is Holder.UNKNOWN and clock - batch.claimed_at > takeover_after
    if batch.executor.identity == executor.identity or holder is Holder.STOPPED or abandoned:
        return
    raise Busy(
        f"batch {batch.plan.batch_id} is open: {batch.executor.text} holds it since {show_clock(batch.claimed_at)}",
        fix=f"wait; it may be taken over {show_duration(takeover_after)} after it stops, or at once when its process "
        "is gone",
    )
