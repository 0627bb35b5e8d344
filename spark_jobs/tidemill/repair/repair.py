"""Repairs: late records are admitted and quarantined records are replayed through the pipeline."""

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
from tidemill.repair.replaying_keys import with_replay

MOST = 100_000
"""The most records of one repair batch: its plan names each of them, and live batches wait for it."""


def repair(
    amendment: AmendmentJob, output: SideOutput, selection: Selection, *, before: int | None = None, mixed: bool = False
) -> Iterator[Committed]:
    """Execute repair batches and yield each commit, with live ones in between, until no chosen record is left.

    Each batch takes the oldest records, at most `MOST`. A record that fails again goes back to its side table with its
    new reasons and the number of the repair batch. It is not taken twice: only records that batches before `before` put
    there are taken, by default those before the first repair batch. A batch of late records repairs one published table
    that refused them. Records from before a change of meaning are taken only with `mixed`.

    Raises:
        BackfillOpen: a backfill is incomplete.
        TidemillError: a batch did not commit; the next run continues it.
    """
    return amendment.by_turns(_Repairing(amendment, output, selection, before, mixed).plan)


def check_repair(amendment: AmendmentJob, output: SideOutput, selection: Selection, *, mixed: bool = False) -> None:
    """Raise what the first batch of the repair would raise when it is planned. Nothing is written."""
    _Repairing(amendment, output, selection, None, mixed).plan(amendment.ledger.view())


def batches_needed(amendment: AmendmentJob, output: SideOutput, chosen: Chosen) -> int:
    """How many batches the repair of these records takes."""
    most = _most(amendment)
    tables = chosen.rows["table_name"].to_pylist() if output is SideOutput.LATE else [None] * chosen.rows.num_rows
    return sum(-(-count // most) for count in Counter(tables).values())


def _most(amendment: AmendmentJob) -> int:
    return min(amendment.batch_records, MOST)


@dataclass
class _Repairing:
    """A running repair. No batch before `since` has wanted records left."""

    amendment: AmendmentJob
    output: SideOutput
    selection: Selection
    before: int | None
    mixed: bool
    since: int = field(default=1, init=False)

    def plan(self, view: View) -> BatchPlan | None:
        """Plan the next batch, or return None if no records are left."""
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
        ranges = chosen.ranges
        asked = with_replay(self.amendment, view, asked, ranges)
        return plan_repair(self.amendment.flow, view, asked, ranges, clock=datetime.now(UTC))

    def _next(self) -> tuple[Chosen, str | None] | None:
        """The oldest of the chosen records. Late records are limited to one table, which is returned with them."""
        chosen = self._oldest(self.selection)
        if chosen is None or self.output is not SideOutput.LATE:
            return None if chosen is None else (chosen, None)
        table = chosen.rows["table_name"][0].as_py()
        of_table = self._oldest(replace(self.selection, table=table))
        # If someone admitted all of them between the two reads, other records are the oldest now.
        return self._next() if of_table is None else (of_table, table)

    def _oldest(self, selection: Selection) -> Chosen | None:
        """The oldest of these records from batches before the first one of the repair; None if there are none."""
        within = _bounded(selection, self.since, self.before or 0)
        if within is None:
            return None
        with boundary("side_tables", self.before or 0):
            chosen = self.amendment.side_tables.oldest(self.output, within, _most(self.amendment))
        return chosen if chosen is not None and chosen.rows.num_rows else None


def _bounded(selection: Selection, since: int, before: int) -> Selection | None:
    """Limit the selection to records that batches in `[since, before)` put aside; None if no batch is left."""
    if since >= before:
        return None
    batches = in_both(selection.batches or [BatchRange(1, MAX_OFFSET)], [BatchRange(since, before)])
    return replace(selection, batches=batches) if batches else None
