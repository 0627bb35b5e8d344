"""Partial aggregates of a batch, and windows merged from panes: the three expressions of an aggregate at work."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.core.aggregates import Aggregate
from tidemill.core.flow import WindowedSink
from tidemill.core.schema import Field, spark_type
from tidemill.engine.branches import pane_sql
from tidemill.engine.firing import Firing

SLICE_COLUMNS = ("batch_id", "attempt")
PANE_COLUMNS = ("pane_day", "pane_start")


def _state_columns(name: str, aggregate: Aggregate) -> Mapping[str, str]:
    return {part: f"{name}__{part}" for part in aggregate.triple.partial}


def partial_aggregates(rows: DataFrame, sink: WindowedSink, *, batch_id: int, attempt: int) -> DataFrame:
    """One row of state per pane and key: slice, pane, keys, and the partial state of every aggregate."""
    partials = [
        F.expr(text).alias(_state_columns(name, aggregate)[part])
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.partial.items()
    ]
    panes = rows.withColumn("_pane", F.expr(pane_sql(sink)))
    grouped = panes.groupBy("_pane", *[F.col(k) for k in sink.keys]).agg(*partials)
    start = F.timestamp_micros(F.col("_pane"))
    return grouped.select(
        F.lit(batch_id).cast("bigint").alias("batch_id"),
        F.lit(attempt).cast("bigint").alias("attempt"),
        start.cast("date").alias("pane_day"),
        start.alias("pane_start"),
        *[c for c in grouped.columns if c != "_pane"],
    )


def merged_windows(state: DataFrame, sink: WindowedSink, firing: Firing, *, batch_id: int) -> DataFrame:
    """The rows to publish: windows that fire, merged from all rows of their panes, in the types of the contract."""
    panes = sink.window.panes
    opened = state.withColumn("_pane", F.unix_micros("pane_start"))
    windows = opened.withColumn(
        "_start", F.explode(F.expr(_window_starts(sink))) if _overlaps(sink) else F.col("_pane")
    )
    merges = [
        F.expr(text.format_map(_quoted(name, aggregate))).alias(_state_columns(name, aggregate)[part])
        for name, aggregate in sink.aggregates.items()
        for part, text in aggregate.triple.merge.items()
    ]
    touched = F.bool_or(F.col("batch_id") == batch_id).alias("_touched")
    candidates = windows.where(F.expr(firing.candidate_sql("_start", panes.size)))
    merged = candidates.groupBy("_start", *[F.col(k) for k in sink.keys]).agg(touched, *merges)
    types = {f.name: f for f in sink.contract.fields}
    return (
        merged.where(F.expr(firing.fires_sql("_start", "_touched", panes.size)))
        .select(
            F.timestamp_micros("_start").alias("window_start"),
            F.timestamp_micros(F.col("_start") + panes.size).alias("window_end"),
            *[F.expr(f"try_cast(`{k}` AS {spark_type(types[k].type)})").alias(k) for k in sink.keys],
            *[_finished(name, aggregate, types[name]) for name, aggregate in sink.aggregates.items()],
        )
        .select(*sink.contract.columns)
    )


def _finished(name: str, aggregate: Aggregate, field: Field):  # type: ignore[no-untyped-def]
    value = aggregate.triple.finish.format_map(_quoted(name, aggregate))
    return F.expr(f"try_cast({value} AS {spark_type(field.type)})").alias(name)


def _quoted(name: str, aggregate: Aggregate) -> dict[str, str]:
    return {part: f"`{column}`" for part, column in _state_columns(name, aggregate).items()}


def _overlaps(sink: WindowedSink) -> bool:
    panes = sink.window.panes
    return panes.size != panes.pane


def _window_starts(sink: WindowedSink) -> str:
    """An SQL expression for the starts of all windows that contain a pane, as an array."""
    panes = sink.window.panes
    last = f"(_pane - pmod(_pane - {panes.offset}L, {panes.slide}L))"
    count = f"(({panes.size}L - (_pane - {last}) - 1) div {panes.slide}L)"
    return f"sequence({last} - {count} * {panes.slide}L, {last}, {panes.slide}L)"
