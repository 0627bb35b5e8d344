"""The page of a pipeline in Airflow, one screen long, written from its declaration and its contracts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import assert_never

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import PUBLISHED, Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, WindowedSink
from tidemill.core.contract.contract import Contract, Severity
from tidemill.core.contract.schema import spark_type
from tidemill.core.declare import operators as op
from tidemill.core.time.times import show_duration
from tidemill_airflow.naming import MAINTENANCE, backfill_dag_of, replay_dag_of

OPERATING = """\
A run executes one batch: it reads on from the last commit, whatever the date of the run is. It is *skipped* if there
is nothing to read, or if another run holds the open batch. It *fails* without a retry if a person must decide or
correct something: the end of the task's log says what. Clear, retry or mark it as you like: no record is lost, and
none counts twice. To catch up in steps, trigger it with parameters.
"""

OPENING = (
    'Open it with `polars.read_delta("PATH")`, `spark.read.format("delta").load("PATH")` or '
    "``SELECT * FROM delta.`PATH` ``."
)

_TOLD_RULES = 3
"""The most rules that are told in words."""


def document(flow: Flow, lake: str) -> str:
    """Return Markdown: what the pipeline reads, where its rows are, how to open them, and what it promises."""
    parts = [
        flow.spec.description.strip() or summary(flow),
        _table(("", ""), ((f"**{name}**", text) for name, text in _facts(flow) if text)),
        *(_sink(sink, lake) for sink in flow.sinks),
        "#### Runs\n\n" + OPERATING,
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def summary(flow: Flow) -> str:
    """Return one line about the pipeline: the first of its description, or what it connects."""
    said = flow.spec.description.strip().partition("\n")[0]
    topics, tables = (", ".join(names) for names in ((i.topic for i in flow.sources), (s.table for s in flow.sinks)))
    return said or f"{topics} to {tables}, {every(flow.spec.every)}"


def every(period: timedelta) -> str:
    """How often, in words: "every minute", "every 90 seconds"."""
    shown = show_duration(period)
    return f"every {shown.removeprefix('1 ')}"


def _facts(flow: Flow) -> Iterator[tuple[str, str]]:
    yield "from", "; ".join(_input(i, pattern=i not in flow.inputs) for i in flow.sources)
    kept = [o.predicate for o in flow.spec.graph.operators.values() if isinstance(o, op.Filter)]
    yield "keeps", ", and ".join(f"records where {code(predicate)}" for predicate in kept)
    yield "to", "; ".join(_rows_of(sink) for sink in flow.sinks)
    yield "runs", f"{every(flow.spec.every)}, one batch at a time"
    yield "owner", flow.spec.owner
    yield "on time", "; ".join(dict.fromkeys(_on_time(flow, sink) for sink in flow.sinks))
    yield "exactly once", "every record counts once in every table, through crashes, retries and overlaps"
    yield "promised", "; ".join(_promises(flow))
    yield "also", _links(flow.name)


def _input(read: Input, *, pattern: bool) -> str:
    what = "all topics like" if pattern else "topic"
    time = f"event time {code(read.event_time)}" if read.event_time else "the time of the record"
    order = f", out of order by at most {show_duration(read.delay)}" if read.delay else ""
    order = order if read.watermark is None else f", watermark {code(read.watermark)}"
    order = order if read.watermark_of is None else f", watermark of {code(read.watermark_of)}"
    return f"{what} {code(read.topic)}, contract {_contract(read.contract)}; {time}{order}"


def _rows_of(sink: Sink) -> str:
    table = f"table {code(sink.table)}"
    match sink:
        case WindowedSink(window=window, allowed_lateness=lateness, trigger=trigger, keys=keys):
            each = " and ".join(filter(None, (f"one row per {window} window", ", ".join(map(code, keys)))))
            late = f"; late records count for {show_duration(lateness)}" if lateness else "; late records do not count"
            said = f"{table}: {each}, published {trigger.text}{late}"
        case FiringSink(keys=keys):
            each = "".join(f", for each {code(key)}" for key in keys)
            what = "window" if sink.replaces else "firing"
            said = f"{table}: one row for each {what}{each}: {sink.text}"
        case RowSink():
            said = f"{table}: each row once, as it is"
        case _:
            assert_never(sink)
    return said if sink.topic is None else f"{said}; also sent to topic {code(sink.topic)}"


def _on_time(flow: Flow, sink: Sink) -> str:
    wait = max((i.delay for i in flow.sources), default=timedelta(0))
    waits = isinstance(sink, FiringSink) and sink.waits_for_watermark
    if waits or (isinstance(sink, WindowedSink) and sink.trigger.fires_on_close):
        if any(i.told for i in flow.sources):
            return "a window appears once the watermark that records or other pipelines tell has passed its end"
        behind = timedelta(microseconds=flow.lags.get(sink.table, 0))
        after = show_duration(wait + behind + flow.spec.every)
        if isinstance(sink, FiringSink) and not sink.bounded:
            return f"a record is in its buffer about {after} after its event time, if newer records arrive"
        what = f"a window of {code(sink.table)}" if flow.lags else "a window"
        return f"{what} appears about {after} after its end, if newer records arrive"
    return f"a record is in its table about {show_duration(flow.spec.every)} after its arrival"


def _promises(flow: Flow) -> Iterator[str]:
    for sink in flow.sinks:
        for level in sink.contract.levels:
            yield f"{code(sink.table)}: {level.name} of at most {level.text}"


def _links(pipeline: str) -> str:
    # Airflow's pages have a base address, so a path without a slash in front works behind any prefix.
    places = {
        "read the past again": backfill_dag_of(pipeline),
        "bring back late and rejected records": replay_dag_of(pipeline),
        "tidy up": MAINTENANCE,
    }
    return " · ".join(f"[{what}](dags/{dag_id})" for what, dag_id in places.items())


def _sink(sink: Sink, lake: str) -> str:
    path = f"{lake}/{PUBLISHED}{sink.table}"
    # Hadoop calls S3 by another name than all others.
    spark = path.replace("s3://", "s3a://", 1)
    other = "" if spark == path else f", for Spark {code(spark)}"
    # Airflow shows the page in a narrow window, and cuts off blocks of code.
    opening = f"PATH is {code(path)}{other}. {OPENING}"
    title = f"#### Table {code(sink.table)}, contract {_contract(sink.contract)}"
    return "\n\n".join((title, opening, _columns(sink.contract), _rules(sink.contract))).rstrip()


def _columns(contract: Contract) -> str:
    rows = (
        (code(f.name), spark_type(f.type) + ("" if f.required else ", may be null"), f.description)
        for f in contract.fields
    )
    return _table(("column", "type", "what"), rows)


def _rules(contract: Contract) -> str:
    """How many rules the audit checks, and the few that have words of their own."""
    blocking = [rule for rule in contract.table_rules if rule.severity is Severity.ERROR]
    warning = len(contract.table_rules) - len(blocking)
    if not contract.table_rules:
        return ""
    said = [" ".join(rule.description.split()) for rule in contract.table_rules if rule.description]
    some = f" Among them: {' '.join(said[:_TOLD_RULES])}" if said else ""
    warned = f" {_counted(warning)} only warned of." if warning else ""
    return f"{_counted(len(blocking))} checked before a row is published; a broken one stops the batch.{warned}{some}"


def _counted(number: int) -> str:
    return "1 rule of the contract is" if number == 1 else f"{number} rules of the contract are"


def _contract(contract: Contract) -> str:
    return f"{code(contract.name)} {contract.version}"


def code(text: str) -> str:
    """Return the text as code within a line, whatever backticks it has."""
    text = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{text}{fence}" if len(fence) == 1 else f"{fence} {text} {fence}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
