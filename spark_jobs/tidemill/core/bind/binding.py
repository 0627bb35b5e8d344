"""Joining a declared pipeline with its contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.firings import columns_of, firing_sink, replaces
from tidemill.core.bind.flow import Flow, Input, check_waiting
from tidemill.core.bind.published import check_primary_key, check_published
from tidemill.core.bind.results import check_results, results_of
from tidemill.core.bind.sinks import ResultStep, RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.contract.contract import Contract
from tidemill.core.contract.schema import DataType, Scalar
from tidemill.core.declare import operators as op
from tidemill.core.declare.columns import columns_by_operator, no_contract
from tidemill.core.declare.graph import Step
from tidemill.core.declare.pipeline_spec import PipelineSpec
from tidemill.core.declare.type_checks import check_fits
from tidemill.core.declare.types import Types, types_by_operator
from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.self_firing import SelfFiring
from tidemill.core.time.trigger import Trigger


def bind(spec: PipelineSpec, contracts: Mapping[str, Contract]) -> Flow:
    """Join a declaration with the contracts it names, and check every column that it uses.

    Raises:
        DeclarationError: a contract is missing or of the wrong kind, a column is unknown, or a published table
            has other columns than its contract; the text names the operator and the line.
    """
    columns = columns_by_operator(spec.graph, contracts)
    types = types_by_operator(spec.graph, contracts)
    reads = {name: operator for name, operator in spec.graph.operators.items() if isinstance(operator, op.Read)}
    inputs = tuple(_input(name, topic, read, contracts) for name, read in reads.items() for topic in read.names)
    patterns = tuple(_input(n, read.pattern, read, contracts) for n, read in reads.items() if read.pattern is not None)
    sinks = tuple(
        _fitting(spec, name, _sink(spec, name, columns, types, contracts), types[name])
        for name, operator in spec.graph.operators.items()
        if isinstance(operator, op.Publish)
    )
    check_waiting(spec, sinks)
    return Flow(spec=spec, inputs=inputs, sinks=sinks, patterns=patterns)


def _input(name: str, topic: str, read: op.Read, contracts: Mapping[str, Contract]) -> Input:
    return Input(
        name=name,
        topic=topic,
        contract=contracts[read.contract],
        event_time=read.event_time,
        delay=read.delay,
        start=read.start,
        watermark=read.watermark,
        watermark_of=read.watermark_of,
    )


def _sink(
    spec: PipelineSpec,
    name: str,
    columns: Mapping[str, tuple[str, ...]],
    types: Mapping[str, Types],
    contracts: Mapping[str, Contract],
) -> Sink:
    graph = spec.graph
    publish = graph.operators[name]
    assert isinstance(publish, op.Publish)
    contract = contracts.get(publish.contract)
    if contract is None:
        raise no_contract(graph.where(name), publish.contract, contracts)
    source, steps = results_of(graph, name)
    if not isinstance(graph.operators[source], op.AggregateBy):
        check_published(graph.where(name), contract, columns[name], change=".select(...)")
        return RowSink(
            table=publish.table,
            contract=contract,
            columns=columns[name],
            paths=_paths(spec, name),
            topic=publish.topic,
        )
    return _aggregated_sink(spec, name, source, contract, steps, columns[name], types)


def _fitting(spec: PipelineSpec, name: str, sink: Sink, types: Types) -> Sink:
    """Return the sink, once its contract is known to take the values whose types are certain."""
    own: dict[str, DataType] = {}
    if isinstance(sink, StatefulSink):
        own = dict.fromkeys(sink.bounds, Scalar.TIMESTAMP)
    if isinstance(sink, FiringSink):
        own |= sink.told.types
    if isinstance(sink, WindowedSink):
        own |= {} if sink.timing is None else {sink.timing: Scalar.STRING}
    for column in sink.contract.columns:
        found = own.get(column) or types.get(column.lower())
        if found is not None:
            check_fits(spec.graph.where(name), column, found, sink.contract)
    return sink


def _aggregated_sink(  # noqa: PLR0913, PLR0917  what is published, of what
    spec: PipelineSpec,
    name: str,
    source: str,
    contract: Contract,
    steps: tuple[ResultStep, ...],
    columns: tuple[str, ...],
    types: Mapping[str, Types],
) -> WindowedSink | FiringSink:
    graph, publish = spec.graph, spec.graph.operators[name]
    assert isinstance(publish, op.Publish)
    aggregate, window, keys = _windowing(spec, source)
    ordered = publish.firing is not None or isinstance(window.spec, SelfFiring)
    appends = ordered and not replaces(publish)
    check_results(graph.where(name), steps, () if appends else (*window.columns[:1], *keys), columns)
    check_published(graph.where(name), contract, (*columns, *columns_of(publish).names))
    head = graph.feeding(source)[0].source
    start = graph.feeding(head)[0].source if keys else head
    common: dict[str, Any] = {"table": publish.table, "contract": contract, "keys": keys}
    common |= {"aggregates": aggregate.aggregates, "paths": _paths(spec, start), "topic": publish.topic}
    if not appends:
        check_primary_key(graph.where(name), contract, window.columns, keys)
    if ordered:
        return firing_sink(spec, name, source, types, results=steps, **common)
    return _windowed_sink(graph.where(name), publish, window, steps, common)


def _windowed_sink(
    where: str, publish: op.Publish, window: op.WindowBy, steps: tuple[ResultStep, ...], common: Mapping[str, Any]
) -> WindowedSink:
    assert not isinstance(window.spec, SelfFiring)
    assert isinstance(publish.trigger, Trigger | None)
    if window.evictor is not None:
        raise DeclarationError(
            f"{where}: the evictor of {window.spec} needs a trigger of the trigger language",
            fix="write for example trigger=AfterWatermark()",
        )
    return WindowedSink(
        **common,
        window=window.spec,
        allowed_lateness=window.allowed_lateness,
        trigger=publish.trigger or Trigger.ON_CLOSE,
        start=window.start,
        end=window.end,
        timing=publish.timing,
        results=steps,
    )


def _windowing(spec: PipelineSpec, source: str) -> tuple[op.AggregateBy, op.WindowBy, tuple[str, ...]]:
    graph = spec.graph
    aggregate = graph.operators[source]
    window_name = graph.feeding(source)[0].source
    window = graph.operators[window_name]
    if not isinstance(aggregate, op.AggregateBy) or not isinstance(window, op.WindowBy):
        raise DeclarationError(f"{graph.where(source)} aggregates a stream that has no windows", fix="add .window(...)")
    before = graph.operators[graph.feeding(window_name)[0].source]
    return aggregate, window, before.columns if isinstance(before, op.KeyBy) else ()


def _paths(spec: PipelineSpec, target: str) -> dict[str, tuple[tuple[Step, ...], ...]]:
    reads = (n for n, o in spec.graph.operators.items() if isinstance(o, op.Read))
    found = {read: spec.graph.paths(read, target) for read in reads}
    return {read: paths for read, paths in found.items() if paths}
