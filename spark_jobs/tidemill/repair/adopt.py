"""Gives a published table to another pipeline, on purpose."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from deltalake.exceptions import CommitFailedError

from tidemill.core.declare.columns import unknown
from tidemill.core.errors import AmendmentError
from tidemill.core.protocol.failpoints import answered, boundary
from tidemill.engine.spark.failures import explained
from tidemill.repair.job import AmendmentJob
from tidemill.tables.handles import newest
from tidemill.tables.owner import hand_over, owner_of


def adopt(amendment: AmendmentJob, table: str) -> str | None:
    """Make the pipeline the owner of a published table, which keeps its rows. Return the owner before, or None.

    The table's history records who did this and why. From then on the former owner cannot write to the table.

    Raises:
        DeclarationError: the pipeline does not publish the table.
        AmendmentError: the table does not exist, already belongs to the pipeline, its owner has an open batch, or
            someone is writing to it.
    """
    sinks = {sink.table: sink for sink in amendment.flow.sinks}
    if (found := sinks.get(table)) is None:
        raise unknown(amendment.pipeline, "published table", table, sinks)
    spec = amendment.uris.published_table(found)
    handle = newest(replace(spec, owner=""))
    if handle is None:
        raise AmendmentError(f"{amendment.pipeline}: there is no table {table} yet", fix="the first batch makes it")
    before = owner_of(handle, spec.owner)
    if before == spec.owner:
        raise AmendmentError(f"{amendment.pipeline}: {table} is its own table already")
    if before is not None and (opened := amendment.project.ledger(before).view().open_batch) is not None:
        raise AmendmentError(
            f"{amendment.pipeline}: {table} belongs to {before}, whose batch {opened.plan.batch_id} is open and may "
            "have written a part of it; nothing was taken over",
            fix=f"complete it first: `tidemill run {before}`",
        )
    by, why = amendment.reason.by, amendment.reason.why
    said = {"before": before or "", "by": by, "why": why, "at": datetime.now(UTC).isoformat()}
    try:
        with explained(f"{amendment.pipeline}: {table}"), boundary("adopted", 0):
            hand_over(handle, spec, said)
            answered()
    except CommitFailedError as error:
        raise AmendmentError(
            f"{amendment.pipeline}: somebody writes to {table} at this moment; nothing was taken over: {error}",
            fix=f"stop {before or 'who writes there'}, then try again",
        ) from error
    return before
