"""A published table gets another owner, on purpose."""

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
    """Make a published table that of the pipeline, with the rows that it has; who owned it before, None for nobody.

    The table's history keeps who wanted it and why. From then on the pipeline that owned it is refused there.

    Raises:
        DeclarationError: the pipeline does not publish the table.
        AmendmentError: there is no such table, it is the pipeline's own, its owner has a batch open, or somebody writes
            to it now.
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
            f"{amendment.pipeline}: batch {opened.plan.batch_id} of {before}, whose table {table} is, is open and may "
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
