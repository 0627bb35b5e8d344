"""What a pipeline computes, as values to print: operators, sinks, contracts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from typing import Any, assert_never

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import RowSink, Sink, WindowedSink
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregates import Aggregate
from tidemill.core.declare.columns import WINDOW_COLUMNS
from tidemill.core.declare.firing import Firing
from tidemill.core.declare.ports import output_ports
from tidemill.core.declare.sketches import ORDER
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.time.panes import EvenPanes
from tidemill.core.time.times import show_duration
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.windows import WindowSpec

_SHOWN_ORDER = ORDER.replace("_time", "event_time", 1)
"""The order of records with the time by the name that declarations give it."""


def logical_json(flow: Flow) -> dict[str, Any]:
    """The logical plan. It does not depend on where and how the pipeline is executed."""
    graph, fired = flow.spec.graph, {sink.table for sink in flow.sinks if isinstance(sink, FiringSink)}
    return {
        "pipeline": flow.name,
        "logical_hash": flow.logical_hash,
        "operators": [
            {
                "name": name,
                "kind": type(graph.operators[name]).__name__,
                "does": _does(graph.operators[name], fired),
                "fed_by": [f"{edge.source}.{edge.source_port}" for edge in graph.feeding(name)],
                "ports": list(output_ports(graph.operators[name])),
                "declared_at": graph.places.get(name, ""),
            }
            for name in graph.in_order()
        ],
        "sinks": [_sink(sink) for sink in flow.sinks],
        "contracts": [
            {
                "name": c.name,
                "version": c.version,
                "format": c.format.value if c.format else None,
                "row_rules": [rule.name for rule in c.row_rules],
                "table_rules": [rule.name for rule in c.table_rules],
                "fingerprint": c.fingerprint,
            }
            for c in flow.contracts
        ],
    }


def _does(operator: op.Operator, fired: Collection[str]) -> str:  # noqa: C901  one case for each operator
    match operator:
        case op.Read():
            time = operator.event_time or "the record's timestamp"
            return f"topic {operator.topic}, contract {operator.contract}; event time {time}, {operator.behind}"
        case op.Behind(by):
            return f"the same records, with a delay that is {show_duration(by)} longer"
        case op.Filter(predicate):
            return predicate
        case op.WithColumns(columns):
            return _assigned(columns)
        case op.Select(columns) | op.KeyBy(columns):
            return ", ".join(columns)
        case op.Union(inputs):
            return f"{inputs} streams"
        case op.Split(routes=routes, default=default, overlap=overlap):
            how = "to every port" if overlap else "to the first port"
            return f"{how}: {_assigned(routes)}; else {default}"
        case op.Discard():
            return "rows count as filtered"
        case op.WindowBy() as window:
            return _windowing(window)
        case op.AggregateBy(aggregates):
            return _assigned({name: _call(aggregate) for name, aggregate in aggregates.items()})
        case op.Publish():
            return _published(operator, "each firing" if operator.table in fired else "row by row")
        case _:
            assert_never(operator)


def _published(publish: op.Publish, by_itself: str) -> str:
    """Where rows go and when; `by_itself` says when if there is no trigger."""
    trigger, firing = publish.trigger, publish.firing
    sent = f"; timing in column {publish.timing}" if publish.timing else ""
    sent += _told(firing) if firing is not None else ""
    sent += f"; sent to topic {publish.topic}" if publish.topic else ""
    how = trigger.value if isinstance(trigger, Trigger) else by_itself if trigger is None else str(trigger)
    return f"{publish.table}, contract {publish.contract}, {how}{sent}"


def _windowing(window: op.WindowBy) -> str:
    parts = [_windows(window.spec)]
    if not isinstance(window.spec, SelfFiring):
        parts.append(f"allowed lateness {show_duration(window.allowed_lateness)}")
    if window.columns and window.columns != WINDOW_COLUMNS:
        parts.append(f"published as {', '.join(window.columns)}")
    return "; ".join([*parts, *([] if window.evictor is None else [str(window.evictor)])])


def _told(firing: Firing) -> str:
    """How firings relate, and which columns say which firing a row is."""
    names = {"index": firing.index, "last": firing.last, "operation": firing.operation}
    parts = [] if firing.accumulation is None else [firing.accumulation]
    parts += [f"{what} in column {column}" for what, column in names.items() if column]
    parts += [] if firing.empty_on_time else ["not on time without new records"]
    parts += ["records after the last firing are lost"] if firing.accept_loss else []
    return "".join(f"; {part}" for part in parts)


def _assigned(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} = {text}" for name, text in values.items())


def _windows(spec: WindowSpec | SelfFiring) -> str:
    if isinstance(spec, SelfFiring):
        return str(spec)
    from datetime import timedelta

    match spec.panes:
        case EvenPanes(pane=pane):
            return f"{spec} in panes of {show_duration(timedelta(microseconds=pane))}"
        case _:
            return str(spec)


def _call(aggregate: Aggregate) -> str:
    """An aggregate as it is declared, without arguments that have their default."""
    values = [(getattr(aggregate, f.name), f) for f in fields(aggregate)]  # type: ignore[arg-type]
    plain = [(f, str(v) if isinstance(v, StrEnum) else v) for v, f in values if v != f.default]
    said = [repr(v) if f.default is MISSING else f"{f.name}={v!r}" for f, v in plain]
    return f"{type(aggregate).__name__}({', '.join(said)})"


def _sink(sink: Sink) -> dict[str, Any]:
    match sink:
        case RowSink(table=table, columns=columns):
            return {"table": table, "windowed": False, "columns": list(columns), "topic": sink.topic}
        case WindowedSink():
            return {
                "table": sink.table,
                "windowed": True,
                "window": _windows(sink.window),
                "keys": list(sink.keys),
                "trigger": sink.trigger.value,
                "topic": sink.topic,
                "columns_of_window": list(sink.bounds),
                "timing": sink.timing,
                "allowed_lateness": show_duration(sink.allowed_lateness),
                "aggregates": {name: _triple(aggregate) for name, aggregate in sink.aggregates.items()},
            }
        case FiringSink():
            return _firings(sink)
        case _:
            assert_never(sink)


def _firings(sink: FiringSink) -> dict[str, Any]:
    return {
        "table": sink.table,
        "windowed": False,
        "window": _windows(sink.declared),
        "fires": sink.text,
        "keys": list(sink.keys),
        "topic": sink.topic,
        "columns_of_window": list(sink.bounds),
        "columns_of_firing": list(sink.told.names),
        "allowed_lateness": show_duration(sink.allowed_lateness),
        "aggregates": {name: _triple(aggregate) for name, aggregate in sink.aggregates.items()},
    }


def _triple(aggregate: Aggregate) -> dict[str, Any]:
    triple = aggregate.triple
    return {
        "call": _call(aggregate),
        "partial": {name: text.replace(ORDER, _SHOWN_ORDER) for name, text in triple.partial.items()},
        "merge": dict(triple.merge),
        "finish": triple.finish,
    }
