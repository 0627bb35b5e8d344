"""Records that were put aside, once more through the pipeline: late ones admitted, quarantined ones replayed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from tidemill.amend.errand import Errand
from tidemill.core.amending import plan_repair
from tidemill.core.amendments import Aside, Repair
from tidemill.core.aside import Choice
from tidemill.core.events import Committed
from tidemill.core.failpoints import boundary
from tidemill.core.plan import BatchPlan
from tidemill.core.slices import BatchRange
from tidemill.core.view import View
from tidemill.log.aside import Chosen


def repair(errand: Errand, aside: Aside, choice: Choice, *, before: int | None = None) -> Iterator[Committed]:
    """Batches as they commit, until none of the chosen records is left where it was, and live ones in between.

    A record that fails again is put aside again, with its new reasons and the batch of the repair; it is not taken
    twice: only what batches `before` this one put there is meant, else before the first of the repair. Late records go
    to one published table in each batch, the one that refused them.

    Raises:
        BackfillOpen: a backfill is not complete.
        TidemillError: a batch did not commit; the next run continues it.
    """
    first = [] if before is None else [before]

    def plan(view: View) -> BatchPlan | None:
        first[:] = first or [view.last_batch_id + 1]
        chosen = chosen_before(errand, aside, choice, first[0])
        if chosen is None or not chosen.rows.num_rows:
            return None
        only = chosen.rows["table_name"][0].as_py() if aside is Aside.LATE else None
        if only is not None:
            chosen = chosen.of_table(only)
        chosen = chosen.take(errand.batch_records)
        asked = Repair(source=aside, version=chosen.version, batches=chosen.batches, only=only, reason=errand.reason)
        return plan_repair(errand.flow, view, asked, chosen.ranges, clock=datetime.now(UTC))

    return errand.by_turns(plan)


def chosen_before(errand: Errand, aside: Aside, choice: Choice, batch_id: int) -> Chosen | None:
    """The chosen records that batches before `batch_id` put aside; None when none ever was."""
    if batch_id <= 1:
        return None
    before = BatchRange(1, batch_id)
    wanted = [
        BatchRange(max(b.from_batch, 1), min(b.until_batch, batch_id))
        for b in choice.batches
        if b.from_batch < batch_id
    ]
    if choice.batches and not wanted:
        return None
    with boundary("aside", batch_id):
        return errand.aside.choose(aside, replace(choice, batches=tuple(wanted) or (before,)))
