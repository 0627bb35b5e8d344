"""Side outputs, the tables of records that were not processed: their fields, and how repairs choose records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tidemill.core.contract.schema import Array, Field, Scalar
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.plan.slices import BatchRange

_WHERE = (
    Field(name="batch_id", type=Scalar.LONG, required=True, description="the batch that read the record"),
    Field(name="topic", type=Scalar.STRING, required=True),
    Field(name="partition", type=Scalar.INTEGER, required=True),
    Field(name="offset", type=Scalar.LONG, required=True),
    Field(name="timestamp", type=Scalar.TIMESTAMP, description="when the log took the record"),
)

QUARANTINE_FIELDS = (
    *_WHERE,
    Field(name="reasons", type=Array(Scalar.STRING), required=True, description="every reason for the rejection"),
    Field(name="value", type=Scalar.BINARY, description="the record's value, byte for byte; null for a tombstone"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

LATE_FIELDS = (
    *_WHERE,
    Field(name="event_time", type=Scalar.TIMESTAMP, required=True),
    Field(name="table_name", type=Scalar.STRING, required=True, description="the published table that refused the row"),
    Field(name="window_start", type=Scalar.TIMESTAMP, description="of the row's last window; null: it has no bounds"),
    Field(name="window_end", type=Scalar.TIMESTAMP),
    Field(name="watermark", type=Scalar.TIMESTAMP, description="the watermark it was late for; null: input had ended"),
    Field(name="row", type=Scalar.STRING, required=True, description="the columns that the table uses, as JSON"),
    Field(name="value", type=Scalar.BINARY, description="the record's value, byte for byte"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)

FIELDS: Mapping[SideOutput, tuple[Field, ...]] = {
    SideOutput.QUARANTINE: QUARANTINE_FIELDS,
    SideOutput.LATE: LATE_FIELDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selects the records of a side output that meet all given conditions.

    `since` and `until` bound, half-open, the clock of the batch that put the records aside. `reason` is text that one
    of the reasons contains. `table` is the published table that refused a late row.
    """

    batches: tuple[BatchRange, ...] = ()
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None
    table: str | None = None
