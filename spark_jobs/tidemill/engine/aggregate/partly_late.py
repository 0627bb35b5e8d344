"""Records that some windows of a table refused, while later ones took them: which windows missed how many."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.work import BackfillStep
from tidemill.core.time.missed import Missed, missed_windows
from tidemill.engine.aggregate.branches import closed_until
from tidemill.engine.aggregate.counting import Counts, refusals_of


def missed_of(flow: Flow, plan: BatchPlan, counts: Mapping[str, Counts]) -> Mapping[str, tuple[Missed, ...]] | None:
    """The windows that missed such records of a batch, by published table; None if none did.

    A backfill tells none: windows that refuse records are forgotten there, and stay as they are.
    """
    if isinstance(plan.work, BackfillStep):
        return None
    told = ((t, k, n) for each in counts.values() for t, found in each.refusals.items() for k, n in found.items())
    refusals, sinks = refusals_of(told), (sink for sink in flow.sinks if isinstance(sink, StatefulSink))
    every = {
        sink.table: missed_windows(sink.panes, closed_until(sink, plan), refusals[sink.table])
        for sink in sinks
        if sink.table in refusals
    }
    return {table: missed for table, missed in every.items() if missed} or None
