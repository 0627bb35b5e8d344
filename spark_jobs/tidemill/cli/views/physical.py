"""How a pipeline is executed here: where Spark runs, what writes, and for each step its Spark jobs and writes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import Sink, StatefulSink, WindowedSink, updates_rows
from tidemill.core.contract.contract import Severity

if TYPE_CHECKING:
    from tidemill.project.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOfBatch:
    """One of the seven steps: what it does, the Spark jobs it starts, and the tables it writes."""

    name: str
    what: str
    jobs: str = "-"
    writes: str = "-"


def physical_json(flow: Flow, settings: Settings) -> dict[str, Any]:
    """The physical plan. On another machine or with other settings it differs, but the results do not."""
    steps = steps_of(flow, settings)
    return {
        "place": place(settings),
        "writer": writer(settings),
        "aggregate": aggregated(flow, settings),
        "merge": merged(flow, settings),
        "driver_rows": settings.driver_rows,
        "driver_records": settings.driver_records,
        "batch_records": settings.batch_records,
        "partition_records": settings.partition_records,
        "steps": [
            {"step": number, "name": step.name, "what": step.what, "jobs": step.jobs, "writes": step.writes}
            for number, step in enumerate(steps, 1)
        ],
    }


def place(settings: Settings) -> str:
    """Where Spark runs."""
    if settings.remote:
        return f"Spark Connect at {settings.remote}"
    if settings.master:
        return f"the cluster {settings.master}"
    return f"a local session, {settings.cores or 'all'} cores"


def writer(settings: Settings) -> str:
    """What writes tables."""
    match settings.writer:
        case None:
            return f"delta-rs up to {settings.driver_rows:,} rows, Spark's Delta writer beyond"
        case "delta-rs":
            return "delta-rs, whatever the number of rows"
        case _:
            return "Spark's Delta writer, whatever the number of rows"


def aggregated(flow: Flow, settings: Settings) -> str:
    """What aggregates the records of a batch, and what keeps the pipeline from a faster way."""
    from tidemill.engine.aggregate.native_plan import left_to_spark_sql

    if settings.aggregate == "spark":
        return "Spark SQL, because of the setting `aggregate`"
    most, reason = settings.driver_records, left_to_spark_sql(flow)
    if not most or left_to_spark_sql(flow, here=True):
        return f"Spark SQL, because of {reason}" if reason else "DuckDB, in Spark's Python workers"
    here = f"DuckDB, in this process up to {most:,} records"
    return f"{here}; Spark SQL beyond, because of {reason}" if reason else f"{here}, in Spark's Python workers beyond"


def merged(flow: Flow, settings: Settings) -> str:
    """What merges the state of windows and computes their rows; empty without tables of windows."""
    from tidemill.engine.aggregate.native_plan import LeftToSpark
    from tidemill.engine.aggregate.native_types import merged_by_spark

    tables = [sink.table for sink in flow.sinks if isinstance(sink, WindowedSink)]
    if not tables:
        return ""
    try:
        found = merged_by_spark(flow)
    except LeftToSpark:
        return "DuckDB or Spark: only Spark knows the types of state, and --spark starts it to ask"
    here = f"DuckDB, in this process up to {settings.driver_rows:,} rows, Spark beyond"
    parts = [f"{table}: Spark, because of {found[table]}" for table in tables if table in found]
    return "; ".join(parts) + (f"; others: {here}" if len(parts) < len(tables) else "") if parts else here


def steps_of(flow: Flow, settings: Settings) -> tuple[StepOfBatch, ...]:
    """The steps of every batch of this pipeline, in order."""
    windowed = [s for s in flow.sinks if isinstance(s, StatefulSink)]
    formats = ", ".join(sorted({i.contract.format.value for i in flow.sources if i.contract.format}))
    row_rules = sum(len(i.contract.row_rules) for i in flow.sources)
    rules = [r for s in flow.sinks for r in s.contract.table_rules]
    errors = sum(1 for r in rules if r.severity is Severity.ERROR)
    return (
        StepOfBatch(name="claim", what="the open batch, or a new plan", writes="ledger: planned or claimed"),
        StepOfBatch(
            name="read", what=f"the planned offsets; {formats} in Arrow batches; {row_rules} row rules as one bit mask"
        ),
        _aggregate(flow, windowed, settings),
        StepOfBatch(
            name="stage",
            what=_of_kinds(
                windowed,
                panes="windows that fire, merged from the panes they touch",
                pieces="firings, merged from their pieces",
                rows="the rows as they are",
            ),
            jobs=f"at most {len(windowed)}: merge what the driver cannot" if windowed else "-",
        ),
        StepOfBatch(name="audit", what=f"{len(rules)} table rules, {errors} of them block", writes="ledger: audited"),
        StepOfBatch(
            name="publish",
            what="each table once, with the batch as its transaction",
            jobs="none for rejected and late rows that the first job brought; at most 1 for the others of each kind",
            writes="; ".join(["quarantine, late: append", *(_write(s) for s in flow.sinks)]),
        ),
        StepOfBatch(name="commit", what="offsets, watermark, account and state", writes="ledger: committed"),
    )


def _aggregate(flow: Flow, windowed: list[StatefulSink], settings: Settings) -> StepOfBatch:
    count = len(flow.sinks)
    fused = count == 1 and all(len(paths) == 1 for sink in flow.sinks for paths in sink.paths.values())
    jobs = "1: read to partial aggregate, counted on the way" if fused else f"1 a input to count, {count} on its rows"
    tables = ", ".join(s.table for s in windowed)
    if ways := _without_sql(flow, settings):
        jobs = f"{ways}; by Spark SQL {jobs}"
    return StepOfBatch(
        name="aggregate",
        what=_of_kinds(
            windowed,
            panes="one row of state for each pane and key",
            pieces="one row of state for each key whose records are folded in their order, and for each piece of them",
            rows="rows are held, nothing is kept as state",
        ),
        jobs=jobs,
        writes=f"state of {tables}: append" if windowed else "-",
    )


def _without_sql(flow: Flow, settings: Settings) -> str:
    """The jobs of the faster ways that a batch may go."""
    from tidemill.engine.aggregate.native_plan import left_to_spark_sql

    if settings.aggregate == "spark":
        return ""
    ways = {
        "none in this process": settings.driver_records and not left_to_spark_sql(flow, here=True),
        "1 in Spark's Python workers": not left_to_spark_sql(flow),
    }
    return ", ".join(way for way, is_open in ways.items() if is_open)


def _of_kinds(sinks: Collection[StatefulSink], *, panes: str, pieces: str, rows: str) -> str:
    """What is said of tables with panes and of tables of firings, if there are such; `rows` if there are neither."""
    fired = [isinstance(sink, FiringSink) for sink in sinks]
    found = [panes] if not all(fired) else []
    return "; ".join([*found, *([pieces] if any(fired) else [])]) or rows


def _write(sink: Sink) -> str:
    sent = f", then sent to {sink.topic}" if sink.topic else ""
    how = f"upsert by {', '.join(sink.row_key) or 'nothing: there is one row'}" if updates_rows(sink) else "append"
    return f"{sink.table}: {how}{sent}"
