"""What a repair reads again, for the keys that it touches: what the log holds, without what does not count."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.errors import OffsetsLost, TopicRecreated, UnknownTopic
from tidemill.core.history.coverage import united
from tidemill.core.plan.amendments import Repair
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.replay import Replay
from tidemill.core.plan.slices import BatchRange
from tidemill.core.protocol.events import Cancelled
from tidemill.core.protocol.failpoints import boundary
from tidemill.engine.aggregate.input_stream import PLACE
from tidemill.engine.key_replay import Again
from tidemill.ledger.ledger import Ledger
from tidemill.log.reading import check_whole
from tidemill.run.claiming import Claim
from tidemill.run.histories import turns_of
from tidemill.run.sources import Sources
from tidemill.tables.lookup import Lookup


def read_again(sources: Sources, ledger: Ledger, flow: Flow, claim: Claim) -> Again | None:
    """What the batch of this plan reads again; None unless it is a repair that folds keys again.

    Each attempt finds the same: it follows from the plan, from events before it, and from what earlier batches put
    aside.

    If the log has lost some of it since the repair was planned, and nothing is published, the repair is given up.

    Raises:
        LogError: the log has lost some of it.
    """
    plan, work = claim.plan, claim.plan.work
    if not isinstance(work, Repair) or work.replay is None:
        return None
    try:
        return _read_again(sources, ledger, flow, plan, work.replay)
    except (OffsetsLost, TopicRecreated, UnknownTopic) as error:
        if claim.audited is not None:
            raise
        reason = f"the log has lost what it reads again: {error.message}"
        cancelled = Cancelled(batch_id=plan.batch_id, attempt=claim.attempt, reason=reason, at=datetime.now(UTC))
        with boundary("cancelled", plan.batch_id):
            ledger.append(lambda _: cancelled)
        raise type(error)(
            f"{error.message}; the repair was dropped before anything was published",
            fix="repeat it: its records then count after all that their keys have read",
        ) from error


def _read_again(sources: Sources, ledger: Ledger, flow: Flow, plan: BatchPlan, replay: Replay) -> Again:
    turns = turns_of(ledger, since=replay.since, until=plan.batch_id)
    tables = [sink.table for sink in flow.sinks if isinstance(sink, FiringSink)]
    reads = united(turn.reads for turn in turns if any(map(turn.feeds, tables)))
    with boundary("scan", plan.batch_id):
        scans = {topic: sources.log.scan(plan.topic_id(topic), ranges) for topic, ranges in reads.items()}
        for scan in scans.values():
            check_whole(scan)
    return Again(
        reads=reads,
        scans=scans,
        aside={table: _aside(sources, plan, table) for table in tables},
    )


def _aside(sources: Sources, plan: BatchPlan, table: str) -> pa.Table:
    """The records that earlier batches put aside and that the repair does not take."""
    rows = sources.side_tables.lacking(table, (BatchRange(1, plan.batch_id),))
    return rows.filter(pa.array(~_taken(rows, plan))).rename_columns(list(PLACE))


def _taken(rows: pa.Table, plan: BatchPlan) -> np.ndarray:
    """Which of these records the repair takes."""
    found = np.zeros(rows.num_rows, np.bool_)
    for topic, ranges in plan.reads.items():
        here = pc.equal(rows["topic"], topic).to_numpy()
        found |= here & (Lookup(ranges).find(rows["partition"], rows["offset"]) >= 0)
    return found
