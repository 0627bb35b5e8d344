"""Records that were put aside, once more through the pipeline: late ones admitted, quarantined ones replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tidemill.core.log.offsets import MAX_OFFSET
from tidemill.core.plan.amendments import Repair, SideOutput
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, in_both
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_repair
from tidemill.core.repair.side_outputs import Selection
from tidemill.log.side_tables import Chosen
from tidemill.repair.job import AmendmentJob

MOST = 100_000
"""Records of one repair: a plan names each of them, and live batches wait for it."""


def repair(
    amendment: AmendmentJob, output: SideOutput, selection: Selection, *, before: int | None = None, mixed: bool = False
) -> Iterator[Committed]:
    """Batches as they commit, until none of the chosen records is left where it was, and live ones in between.

    Each takes the oldest records, at most `MOST` of them. A record that fails again is put aside again, with its new
    reasons and the batch of the repair; it is not taken twice: only what batches `before` this one put there is meant,
    else before the first of the repair. Late records go in each batch to one published table, one that refused them.
    Only when numbers of two meanings may be `mixed`, records that were put aside before a change of meaning count.

    Raises:
        BackfillOpen: a backfill is not complete.
        TidemillError: a batch did not commit; the next run continues it.
    """
    return amendment.by_turns(_Repairing(amendment, output, selection, before, mixed).plan)


def batches_needed(amendment: AmendmentJob, output: SideOutput, chosen: Chosen) -> int:
    """How many batches it takes to repair these records."""
    most = _most(amendment)
    tables = chosen.rows["table_name"].to_pylist() if output is SideOutput.LATE else [None] * chosen.rows.num_rows
    return sum(-(-count // most) for count in Counter(tables).values())


def _most(amendment: AmendmentJob) -> int:
    return min(amendment.batch_records, MOST)


@dataclass
class _Repairing:
    """A repair on its way. `since` is a batch before which nothing that is meant is left."""

    amendment: AmendmentJob
    output: SideOutput
    selection: Selection
    before: int | None
    mixed: bool
    since: int = field(default=1, init=False)

    def plan(self, view: View) -> BatchPlan | None:
        """The next batch."""
        self.before = self.before or view.last_batch_id + 1
        found = self._next()
        if found is None:
            return None
        chosen, only = found
        self.since = chosen.rows["batch_id"][0].as_py()
        asked = Repair(
            source=self.output,
            version=chosen.version,
            batches=chosen.batches,
            only=only,
            reason=self.amendment.reason,
            mixed=self.mixed or None,
        )
        return plan_repair(self.amendment.flow, view, asked, chosen.ranges, clock=datetime.now(UTC))

    def _next(self) -> tuple[Chosen, str | None] | None:
        """The oldest of the chosen records; late ones are those of one table, which is named."""
        chosen = self._oldest(self.selection)
        if chosen is None or self.output is not SideOutput.LATE:
            return None if chosen is None else (chosen, None)
        table = chosen.rows["table_name"][0].as_py()
        of_table = self._oldest(replace(self.selection, table=table))
        # Where somebody admitted all of them between the two looks, others are the oldest now.
        return self._next() if of_table is None else (of_table, table)

    def _oldest(self, selection: Selection) -> Chosen | None:
        """The oldest of these records that batches before the first of the repair put aside; None without any."""
        within = _bounded(selection, self.since, self.before or 0)
        if within is None:
            return None
        with boundary("side_tables", self.before or 0):
            chosen = self.amendment.side_tables.oldest(self.output, within, _most(self.amendment))
        return chosen if chosen is not None and chosen.rows.num_rows else None


def _bounded(selection: Selection, since: int, before: int) -> Selection | None:
    """The same records, of those that batches in `[since, before)` put aside; None when there can be none."""
    if since >= before:
        return None
    batches = in_both(selection.batches or [BatchRange(1, MAX_OFFSET)], [BatchRange(since, before)])
    return replace(selection, batches=batches) if batches else None
