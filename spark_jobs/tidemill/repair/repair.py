"""Records that were put aside, once more through the pipeline: late ones admitted, quarantined ones replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tidemill.core.log.offsets import MAX_OFFSET
from tidemill.core.plan.kinds import Aside, Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.slices import BatchRange, in_both
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import boundary
from tidemill.core.protocol.view import View
from tidemill.core.repair.planning import plan_repair
from tidemill.core.repair.side_outputs import Choice
from tidemill.log.aside import Chosen
from tidemill.repair.job import Errand

MOST = 100_000
"""Records of one repair: a plan names each of them, and live batches wait for it."""


def repair(
    errand: Errand, aside: Aside, choice: Choice, *, before: int | None = None, mixed: bool = False
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
    return errand.by_turns(_Repairing(errand, aside, choice, before, mixed).plan)


def batches_needed(errand: Errand, aside: Aside, chosen: Chosen) -> int:
    """How many batches it takes to repair these records."""
    most = _most(errand)
    tables = chosen.rows["table_name"].to_pylist() if aside is Aside.LATE else [None] * chosen.rows.num_rows
    return sum(-(-count // most) for count in Counter(tables).values())


def _most(errand: Errand) -> int:
    return min(errand.batch_records, MOST)


@dataclass
class _Repairing:
    """A repair on its way. `since` is a batch before which nothing that is meant is left."""

    errand: Errand
    aside: Aside
    choice: Choice
    before: int | None
    mixed: bool
    since: int = field(default=1, init=False)

    def plan(self, view: View) -> BatchPlan | None:
        """The next batch."""
        self.before = self.before or view.last_batch_id + 1
        chosen = self._oldest(self.choice)
        if chosen is None or not chosen.rows.num_rows:
            return None
        only = chosen.rows["table_name"][0].as_py() if self.aside is Aside.LATE else None
        if only is not None:
            chosen = self._oldest(replace(self.choice, table=only)) or chosen
        self.since = chosen.rows["batch_id"][0].as_py()
        asked = Repair(
            source=self.aside,
            version=chosen.version,
            batches=chosen.batches,
            only=only,
            reason=self.errand.reason,
            mixed=self.mixed or None,
        )
        return plan_repair(self.errand.flow, view, asked, chosen.ranges, clock=datetime.now(UTC))

    def _oldest(self, choice: Choice) -> Chosen | None:
        """The next of the chosen records that batches before the first of the repair put aside."""
        within = _bounded(choice, self.since, self.before or 0)
        if within is None:
            return None
        with boundary("aside", self.before or 0):
            return self.errand.aside.oldest(self.aside, within, _most(self.errand))


def _bounded(choice: Choice, since: int, before: int) -> Choice | None:
    """The same records, of those that batches in `[since, before)` put aside; None when there can be none."""
    if since >= before:
        return None
    batches = in_both(choice.batches or [BatchRange(1, MAX_OFFSET)], [BatchRange(since, before)])
    return replace(choice, batches=batches) if batches else None
