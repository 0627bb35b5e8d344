"""Rejected and late rows: what goes to quarantine and to the late table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.core.contract import Contract
from tidemill.core.flow import WindowedSink
from tidemill.core.plan import BatchPlan
from tidemill.core.schema import Array, Field, Scalar
from tidemill.engine.branches import Branch
from tidemill.engine.rows import reasons_sql

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
    Field(name="window_start", type=Scalar.TIMESTAMP, required=True, description="of the row's last window"),
    Field(name="window_end", type=Scalar.TIMESTAMP, required=True),
    Field(name="watermark", type=Scalar.TIMESTAMP, description="the watermark that the window was closed by"),
    Field(name="row", type=Scalar.STRING, required=True, description="the columns that the table uses, as JSON"),
    Field(name="recorded_at", type=Scalar.TIMESTAMP, required=True, description="the clock of the batch"),
)


def _where(plan: BatchPlan) -> list[Column]:
    return [
        F.lit(plan.batch_id).cast("bigint").alias("batch_id"),
        F.col("_topic").alias("topic"),
        F.col("_partition").alias("partition"),
        F.col("_offset").alias("offset"),
        F.col("_timestamp").alias("timestamp"),
    ]


def rejected_rows(frame: DataFrame, contract: Contract, plan: BatchPlan) -> DataFrame:
    """The rows of one input that its contract refused, with every reason and the raw value."""
    return frame.where("_rejected").select(
        *_where(plan),
        F.expr(reasons_sql(contract.row_rules)).alias("reasons"),
        F.col("_raw").alias("value"),
        F.lit(plan.clock).alias("recorded_at"),
    )


def late_rows(frame: DataFrame, branches: Sequence[Branch], plan: BatchPlan) -> DataFrame | None:
    """The rows that every window of a sink refused, once per sink; None when no sink has windows."""
    parts = [_late_of(frame, b, b.sink, plan) for b in branches if isinstance(b.sink, WindowedSink)]
    return reduce(DataFrame.unionByName, parts) if parts else None


def _late_of(frame: DataFrame, branch: Branch, sink: WindowedSink, plan: BatchPlan) -> DataFrame:
    panes = sink.window.panes
    start = F.expr(f"_time - pmod(_time - {panes.offset}L, {panes.slide}L)")
    columns = [F.col(branch.prefix + c).alias(c) for c in branch.columns]
    row = F.to_json(F.struct(*columns)) if columns else F.lit("{}")
    return frame.where(branch.late).select(
        *_where(plan),
        F.timestamp_micros("_time").alias("event_time"),
        F.lit(sink.table).alias("table_name"),
        F.timestamp_micros(start).alias("window_start"),
        F.timestamp_micros(start + panes.size).alias("window_end"),
        F.timestamp_micros(F.lit(plan.lateness_watermark)).alias("watermark"),
        row.alias("row"),
        F.lit(plan.clock).alias("recorded_at"),
    )
