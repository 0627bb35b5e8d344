"""Folds slices: then state grows with panes and keys, not with the number of batches."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from tidemill.core.change.compatibility import check_compatibility
from tidemill.core.errors import Incompatible
from tidemill.core.history.coverage import Cover, covers_of
from tidemill.core.history.past import Past
from tidemill.core.history.zones import Zone
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import batch_ranges
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_fold
from tidemill.core.repair.state_compaction import Folding
from tidemill.repair.job import AmendmentJob

FOLDING = Folding()


def due(amendment: AmendmentJob, view: View, folding: Folding | None = None) -> tuple[tuple[Cover, ...], ...]:
    """Return the groups of batches that `fold` would turn into one slice each.

    Empty while a batch is open, which must end first, and if another declaration built the state.
    """
    if view.open_batch is not None:
        return ()
    try:
        check_compatibility(amendment.flow, view)
    except Incompatible:
        return ()
    folding, slices = folding or FOLDING, view.position.slices
    since = view.position.batch_id - folding.reach

    def may_be_due(zone: Zone) -> bool:
        first, last = zone.batches
        return last >= since and not any(first in r and last in r for r in slices.hidden)

    return folding.due(amendment.flow, view.position, amendment.ledger.past().covers(slices, may_be_due))


def fold(amendment: AmendmentJob, folding: Folding | None = None) -> Iterator[Committed]:
    """Execute one fold batch for each group that is due now, and yield each commit.

    Readers see no change, and offsets and watermark stay. Live batches may run in between. An open batch is left to its
    own run.

    Raises:
        TidemillError: a batch did not commit; the next run of any kind continues it.
    """
    waiting = [frozenset(c.batch_id for c in group) for group in due(amendment, amendment.ledger.view(), folding)]

    def plan(view: View) -> BatchPlan | None:
        past = amendment.ledger.past() if waiting else Past()
        while waiting and view.position.backfill is None:
            wanted = waiting.pop(0)
            group = covers_of(past.with_ids(batch_ranges(wanted)), view.position.slices)
            if len(group) == len(wanted):
                return plan_fold(amendment.flow, view, group, clock=datetime.now(UTC))
        return None

    return amendment.until_done(plan) if waiting else iter(())
