"""The batches that have read what counts now, with the moments between which each lay, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.history.coverage import plans_of
from tidemill.core.history.index import IndexedBatch
from tidemill.core.history.lineage import Turn, lineage
from tidemill.core.log.offsets import MAX_OFFSET
from tidemill.core.plan.amendments import Rewind
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, batch_ranges
from tidemill.core.plan.work import replay_of
from tidemill.core.protocol.events import Planned
from tidemill.engine.aggregate.epochs import History
from tidemill.ledger.ledger import Ledger


def histories(ledger: Ledger, flow: Flow, plan: BatchPlan) -> Mapping[str, History]:
    """For each table of firings that a plan computes again, the batches to fold; empty for all other plans.

    They follow from the plan and from events before it, which never change, so each attempt finds the same.
    """
    replay = replay_of(plan.work)
    if replay is None:
        return {}
    turns = turns_of(ledger, since=replay.since, until=plan.batch_id)
    return {sink.table: History.of(turns, sink.table) for sink in flow.sinks if isinstance(sink, FiringSink)}


def turns_of(ledger: Ledger, *, since: int = 1, until: int = MAX_OFFSET) -> Sequence[Turn]:
    """The live batches and repairs with ids in `[since, until)` whose records count, in order."""
    batches = {batch.batch_id: batch for batch in standing(ledger, since=since, until=until)}
    turns = {
        plan.batch_id: Turn.of(plan, batches[plan.batch_id])
        for ids in batch_ranges(batches)
        # Of a batch that was planned twice, the later plan counts.
        for plan in plans_of(entry.event for entry in ledger.of_batches(ids, Planned))
    }
    return [turns[batch_id] for batch_id in batches]


def standing(ledger: Ledger, *, since: int = 1, until: int = MAX_OFFSET) -> Sequence[IndexedBatch]:
    """The live batches and repairs with ids in `[since, until)` that no rewind took back, in order."""
    batches = ledger.past().batches(lambda zone: zone.batches[1] >= since)
    inside = (batch for batch in batches if since <= batch.batch_id < until)
    return lineage(inside, lambda rewind: _target(plan_of(ledger, rewind)))


def plan_of(ledger: Ledger, batch_id: int) -> BatchPlan:
    """The plan of a batch that committed."""
    *_, plan = plans_of(e.event for e in ledger.of_batches(BatchRange(batch_id, batch_id + 1), Planned))
    return plan


def _target(plan: BatchPlan) -> int:
    """The batch that a rewind goes back to."""
    assert isinstance(plan.work, Rewind)
    return plan.work.position.batch_id
