"""A person's decision about a batch that its audit blocks."""

from __future__ import annotations

from datetime import datetime

from tidemill.core.errors import AmendmentError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Decided, Decision, Event, told
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import OpenBatch, View
from tidemill.ledger.ledger import Ledger


def decide(  # noqa: PLR0913  what is decided, about what, by whom
    ledger: Ledger, pipeline: str, decision: Decision, reason: Reason, at: datetime, *, batch_id: int | None = None
) -> int:
    """Record the decision, which the next run obeys. Return the number of the batch it is about.

    With `batch_id`, the decision is about this batch and no other, whatever happened since somebody looked at it.

    Raises:
        AmendmentError: no batch is blocked, or another one than `batch_id`.
    """

    def event(view: View) -> Event:
        batch = view.open_batch
        if batch is None or not batch.is_blocked:
            raise _nothing_to_decide(pipeline, batch)
        if batch_id not in (None, batch.plan.batch_id):
            raise AmendmentError(
                f"{pipeline}: the audit blocks batch {batch.plan.batch_id}, and the decision is about batch "
                f"{batch_id}; nothing was decided",
                fix=f"look at batch {batch.plan.batch_id}, and decide about it",
            )
        return Decided(
            batch_id=batch.plan.batch_id,
            attempt=batch.attempt,
            decision=decision,
            by=reason.by,
            why=reason.why,
            at=at,
        )

    opened = ledger.view().open_batch
    with boundary("decided", 0 if opened is None else opened.plan.batch_id):
        view = ledger.append(event)
    assert view.open_batch is not None
    return view.open_batch.plan.batch_id


def _nothing_to_decide(pipeline: str, batch: OpenBatch | None) -> AmendmentError:
    if batch is None or batch.decided is None:
        return AmendmentError(
            f"{pipeline}: no batch is blocked by its audit", fix=f"`tidemill status {pipeline}` shows the open one"
        )
    decided = batch.decided
    return AmendmentError(
        f"{pipeline}: {decided.decision.value} is recorded about batch {batch.plan.batch_id} already, by "
        f"{told(decided.by, decided.why)}; a decision is not taken back",
        fix=f"tidemill run {pipeline}",
    )
