"""The page of a pipeline in Airflow, written from its declaration and its contracts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import assert_never

from tidemill.core.bind.flow import Flow, RowSink, Sink, WindowedSink
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import spark_type
from tidemill.core.declare import operators as op
from tidemill.core.declare.graph import Graph
from tidemill.core.time.times import show_duration

OPERATING = """\
A run takes the next records of its topics from where the last commit left them, whatever the run's date is. It is
*skipped* when there is nothing to do, or when another run holds the open batch; it *fails* without a retry when an
audit blocks the batch: then nothing is published and no offset moves until the cause is gone. A retry, a cleared
task and a run after a crash all go on with the batch that was planned.

Trigger a run with parameters to catch up in bounded steps: at most `max_records` in each batch, at most `max_batches`
of them in this run. It goes on after the last commit too: nothing that was committed is read again.

To compute the past again, trigger the DAG that is called as this one with `.backfill`, or backfill this DAG over past
dates in Airflow: each run then reads again what the log took in its interval. `.replay` puts rejected and late records
through the pipeline once more. A live run waits for one batch of them at most.
"""


def document(flow: Flow) -> str:
    """Return Markdown that says what the pipeline reads, does, publishes and promises."""
    parts = [
        flow.spec.description,
        _promise(flow),
        "### Reads\n\n" + _inputs(flow),
        "### Data flow\n\n```text\n" + "\n".join(flow_lines(flow.spec.graph)) + "\n```",
        "### Publishes\n\n" + "\n\n".join(_sink(sink) for sink in flow.sinks),
        "### Operating\n\n" + OPERATING,
    ]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def flow_lines(graph: Graph) -> list[str]:
    """Return the operators in the order in which rows pass them, one per line, each with its inputs."""
    width = max(len(name) for name in graph.operators)
    return [f"{name:<{width}}  {says(graph.operators[name])}{_fed_by(graph, name)}" for name in graph.in_order()]


def _fed_by(graph: Graph, name: str) -> str:
    feeds = [e.source if e.source_port == "out" else f"{e.source}.{e.source_port}" for e in graph.feeding(name)]
    return f"  <- {', '.join(feeds)}" if feeds else ""


def says(operator: op.Operator) -> str:  # noqa: C901  one case per operator
    """Describe an operator in a few words."""
    match operator:
        case op.Read(topic=topic, contract=contract, event_time=event_time):
            return f"read {topic} as {contract}, event time {event_time or 'of the record'}"
        case op.Filter(predicate):
            return f"keep where {predicate}"
        case op.WithColumns(columns):
            return "set " + _assignments(columns.items())
        case op.Select(columns):
            return "select " + ", ".join(columns)
        case op.Union():
            return "all rows of both" if operator.inputs == 2 else "all rows"
        case op.Split(routes=routes, default=default):
            return "route to " + _assignments(routes.items(), ": ") + f", else {default}"
        case op.Discard():
            return "discard"
        case op.KeyBy(columns):
            return "by " + ", ".join(columns)
        case op.WindowBy(spec=spec, allowed_lateness=lateness):
            return f"{spec}, {show_duration(lateness)} allowed lateness"
        case op.AggregateBy(aggregates):
            return "aggregate " + ", ".join(f"{name} = {what}" for name, what in aggregates.items())
        case op.Publish(table=table, contract=contract):
            return f"publish {table} under {contract}"
        case _:
            assert_never(operator)


def _assignments(pairs: Iterable[tuple[str, str]], sign: str = " = ") -> str:
    return ", ".join(f"{name}{sign}{expression}" for name, expression in pairs)


def _promise(flow: Flow) -> str:
    spec = flow.spec
    rows = [
        ("owner", spec.owner),
        ("a batch starts every", show_duration(spec.every)),
        ("on time means", _on_time(flow)),
        ("exactly once", "every record counts once in every published table, through crashes, retries and overlaps"),
        ("an open batch is taken over after", show_duration(spec.takeover_after)),
    ]
    return _table(("", ""), rows)


def _on_time(flow: Flow) -> str:
    wait = max((i.delay for i in flow.sources), default=timedelta(0))
    if not any(isinstance(sink, WindowedSink) for sink in flow.sinks):
        return f"a record is published by the first batch after its arrival, about {show_duration(flow.spec.every)}"
    return (
        f"a window is published by the first batch that saw an event {show_duration(wait)} or more after its end, "
        f"about {show_duration(wait + flow.spec.every)} after it"
    )


def _inputs(flow: Flow) -> str:
    rows = [
        (
            f"`{i.topic}`" if i in flow.inputs else f"all like `{i.topic}`",
            _contract(i.contract),
            f"`{i.event_time or 'timestamp of the record'}`",
            show_duration(i.delay),
        )
        for i in flow.sources
    ]
    return _table(("topic", "contract", "event time", "out of order by at most"), rows)


def _sink(sink: Sink) -> str:
    match sink:
        case WindowedSink(window=window, allowed_lateness=lateness, trigger=trigger, keys=keys):
            key = ", ".join(f"`{k}`" for k in keys) or "all records together"
            late = show_duration(lateness)
            says_how = f"{window} windows by {key}, each published {trigger.text}, late records for {late}"
        case RowSink():
            says_how = "rows as they are, each appended once"
        case _:
            assert_never(sink)
    if sink.topic is not None:
        says_how += f"; sent to topic `{sink.topic}`"
    return f"**`{sink.table}`** under {_contract(sink.contract)}: {says_how}.\n\n{_columns(sink.contract)}"


def _contract(contract: Contract) -> str:
    return f"`{contract.name}` {contract.version}"


def _columns(contract: Contract) -> str:
    rows = [(f"`{f.name}`", spark_type(f.type), "yes" if f.required else "", f.description) for f in contract.fields]
    rules = [f"- {r.severity.value}: `{r.name}` {r.description}".rstrip() for r in contract.table_rules]
    return "\n".join([_table(("column", "type", "required", "meaning"), rows), *([""] if rules else []), *rules])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in line) + " |" for line in lines
    )
