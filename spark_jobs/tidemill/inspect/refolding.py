"""Folds the whole history of a table of firings again, batch by batch as it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.history.coverage import Cover, plans_of
from tidemill.core.history.reading_order import reading_order
from tidemill.core.ordered.records import Moment
from tidemill.core.plan.amendments import Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import Kind
from tidemill.core.protocol.events import Planned
from tidemill.core.time.times import micros
from tidemill.engine.aggregate.epochs import Epoch, History
from tidemill.repair.job import AmendmentJob


def history_of(amendment: AmendmentJob, sink: FiringSink, covers: Sequence[Cover]) -> History:
    """The batches that `covers` show, in their order, with the moments between which each lay.

    Live batches that read nothing are among them: they may have let time pass.
    """
    batches = list(amendment.ledger.past().batches())
    after = {batch.batch_id: batch.after for batch in batches}
    slices = amendment.ledger.view().position.slices
    live = [b.batch_id for b in batches if b.kind is Kind.LIVE and slices.attempt_of(b.batch_id) == b.attempt]
    shown = batch_ranges([*live, *(batches for cover in covers for batches in cover.batches)])
    own = [plan for plan in _plans(amendment, shown) if plan.batch_id in after and _feeds(plan, sink)]
    epochs = tuple(_epoch(plan, after[plan.batch_id]) for plan in own)
    order = reading_order(plan.reads for plan in own)
    return History(epochs=epochs, ranges={(tp.topic, tp.partition): stretches for tp, stretches in order.items()})


def _plans(amendment: AmendmentJob, batches: Iterable[BatchRange]) -> Sequence[BatchPlan]:
    """The plans of batches, in order; of a batch that was planned twice, the later one."""
    found = {}
    for each in batches:
        events = (entry.event for entry in amendment.ledger.of_batches(each, Planned))
        found.update({plan.batch_id: plan for plan in plans_of(events)})
    return [found[batch] for batch in sorted(found)]


def _feeds(plan: BatchPlan, sink: FiringSink) -> bool:
    """Whether a batch may bring records to a table, or let time pass for it."""
    return plan.live is not None or (isinstance(plan.work, Repair) and plan.work.only in {None, sink.table})


def _epoch(plan: BatchPlan, after: int) -> Epoch:
    before, clock = plan.position.watermark, micros(plan.clock)
    return Epoch(plan.batch_id, Moment(before, clock), Moment(after, clock) if plan.live else Moment(before))
