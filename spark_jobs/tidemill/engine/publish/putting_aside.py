"""Writes what a batch puts aside: rejected records to the quarantine, late ones to the late table."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.plan.amendments import Repair, SideOutput
from tidemill.core.plan.backfill_job import Backfill
from tidemill.engine.publish.publishing import Publisher
from tidemill.engine.publish.side_tables import SideOutputs, Taken


def put_aside(publisher: Publisher, outputs: SideOutputs, job: Backfill | None) -> Mapping[str, int]:
    """Write rejected and late rows; return how many records were rejected for each reason.

    `job` is the backfill after this batch. A repair takes its own records out of their table.
    """
    plan, quarantine, late_table = publisher.plan, publisher.uris.quarantine(), publisher.uris.late()
    rejected, late = outputs.rejected(quarantine), outputs.late(late_table)
    reasons = rejected.writer.tally(rejected.rows) if rejected else {}
    match plan.work:
        case Repair(source=SideOutput.QUARANTINE) as repair:
            publisher.take_out(Taken(quarantine, plan, repair), None, rejected)
            publisher.write_side_output(late_table, late, None)
        case Repair(source=SideOutput.LATE) as repair:
            # Records that are rejected now stay in the late table.
            refused = rejected.writer.arrow(rejected.rows) if rejected else None
            publisher.take_out(Taken(late_table, plan, repair), refused, late)
        case _:
            publisher.write_side_output(quarantine, rejected, job)
            publisher.write_side_output(late_table, late, job)
    return reasons
