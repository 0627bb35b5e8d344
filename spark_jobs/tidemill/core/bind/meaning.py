"""What the numbers of a published table mean: every part of a declaration that decides what a record adds to them.

A shape (`WindowedSink.shape`) says how rows of state merge. A meaning says which rows there are: how records are
decoded, which are rejected, what their event time is, and which filters, columns and routes lead to the table. The
ledger keeps the meaning, so that somebody must decide about each change of it.

A meaning leaves out what cannot change a published number: names of operators, selections, columns that the table does
not use, rules that only warn, and the audit. It also leaves out what decides whether a record comes in time (`delay`,
`watermark`, `allowed_lateness`, `idle_timeout`, `future_tolerance`): other records are kept in tables that say why.
Only for firings it has `allowed_lateness`, which decides when a window fires for the last time.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, StatefulSink, WindowedSink
from tidemill.core.contract.contract import Contract, Severity
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.graph import Step
from tidemill.core.identity.contracts import extra_meaning, field_meaning, type_meaning
from tidemill.core.identity.declarations import encoded, written
from tidemill.core.identity.semantics import SEMANTICS
from tidemill.core.sql.expressions import columns_of

Meaning = Mapping[str, str]
"""What a table means, by the name of each part. A part of an input is named `LABEL: part`."""

VERSION = "semantics"
RULES = "rules"
_OF_INPUT = ": "
_WAY = "way "
_BY_PATTERN = "topics by pattern"


def meanings(flow: Flow) -> Mapping[str, Meaning]:
    """What each published table of a pipeline means, as it is declared now."""
    return {sink.table: _meaning(flow, sink) for sink in flow.sinks}


def _meaning(flow: Flow, sink: Sink) -> Meaning:
    parts: dict[str, Any] = {VERSION: SEMANTICS}
    for source in flow.sources:
        if source.name in sink.paths:
            parts |= {f"{label(source, flow)}{_OF_INPUT}{n}": p for n, p in _of_input(source, sink).items()}
    fields = sink.contract.fields
    if isinstance(sink, WindowedSink):
        parts["trigger"] = sink.trigger.value
        fields = sink.computed
    if isinstance(sink, FiringSink):
        parts |= sink.timing
        fields = sink.computed
    if isinstance(sink, StatefulSink) and sink.results:
        parts["results"] = [encoded(step) for step in sink.results]
    parts |= {f"column {f.name}": type_meaning(f.type) for f in fields}
    return {name: written(part) for name, part in parts.items()}


def label(source: Input, flow: Flow) -> str:
    """How a meaning names an input: by its topic, or `topics by pattern`, with a number from the second pattern on."""
    if source not in flow.patterns:
        return source.topic
    return _BY_PATTERN + (f" {n}" if (n := flow.patterns.index(source)) else "")


def by_pattern(name: str) -> bool:
    """Whether a label belongs to an input with a pattern. No topic has this label: topic names have no blanks."""
    return name.startswith(_BY_PATTERN)


def of_input(name: str) -> str | None:
    """The label of the input that a part belongs to; None for a part of the table itself."""
    before, separator, _ = name.rpartition(_OF_INPUT)
    return before if separator else None


def of_branch(name: str) -> str | None:
    """The label of the input from which a branch leads to the table; None for another part."""
    before, separator, part = name.rpartition(_OF_INPUT)
    return before if separator and part.startswith(_WAY) else None


def _of_input(source: Input, sink: Sink) -> dict[str, Any]:
    ways = [_way(path, sink) for _, path in branches(source, sink)]
    return {
        "event time": source.event_time,
        **_decoding(source.contract),
        **{f"{_WAY}{number}": way for number, way in enumerate(ways, start=1)},
    }


def branches(source: Input, sink: Sink) -> list[tuple[str, Sequence[Step]]]:
    """Every path from an input to a table, with its part of the meaning, in the order of these parts."""
    return sorted(((written(_way(path, sink)), path) for path in sink.paths[source.name]), key=operator.itemgetter(0))


def _decoding(contract: Contract) -> dict[str, Any]:
    """What decides how a record is decoded, and whether it is rejected."""
    errors = sorted(r.predicate for r in contract.row_rules if r.severity is Severity.ERROR)
    return {
        "format": None if contract.format is None else contract.format.value,
        "extra fields": extra_meaning(contract),
        "options": [[name, value] for name, value in sorted(contract.options.items())],
        "fields": [field_meaning(f) for f in contract.fields],
        RULES: [{"sql": predicate} for predicate in errors],
    }


def _way(path: Sequence[Step], sink: Sink) -> list[Any]:
    """What happens to a row on one path to the table, step by step, without columns that no later step uses."""
    used, steps = _used(sink), []
    for step in reversed(path):
        match step.operator:
            case op.WithColumns(columns):
                kept = {name: text for name, text in columns.items() if name.lower() in used}
                used = (used - {name.lower() for name in kept}) | _names(kept.values())
                steps += [encoded(op.WithColumns(kept))] if kept else []
            case op.Filter(predicate) as kept_rows:
                used |= _names([predicate])
                steps.append(encoded(kept_rows))
            case op.Split() as split:
                route = _Route.of(split, step.port)
                used |= _names(route.predicates)
                steps.append(route.encoded)
            case _:
                # Selections and unions only name columns.
                pass
    return steps[::-1]


def _used(sink: Sink) -> frozenset[str]:
    if isinstance(sink, RowSink):
        return frozenset(name.lower() for name in sink.columns)
    read = [name for aggregate in sink.aggregates.values() for name in columns_read(aggregate)]
    if isinstance(sink, FiringSink):
        read += [name for name in (sink.attribute, sink.marker) if name is not None]
    return frozenset(name.lower() for name in (*sink.keys, *read))


def _names(expressions: Any) -> frozenset[str]:
    return frozenset(name.lower() for text in expressions for name in columns_of(text))


@dataclass(frozen=True, slots=True)
class _Route:
    """Why a row goes to one port of a split: `taken` is true for it, and no predicate in `refused` is."""

    refused: tuple[str, ...]
    taken: str | None

    @staticmethod
    def of(split: op.Split, port: str) -> _Route:
        ports = tuple(split.routes)
        before = ports[: ports.index(port)] if port in ports else ports
        refused = () if split.overlap and port in ports else tuple(split.routes[p] for p in before)
        return _Route(refused, split.routes.get(port))

    @property
    def predicates(self) -> tuple[str, ...]:
        return (*self.refused, *([] if self.taken is None else [self.taken]))

    @property
    def encoded(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": "route"}
        if self.taken is not None:
            found["keep"] = {"sql": self.taken}
        if self.refused:
            found["unless"] = [{"sql": text} for text in self.refused]
        return found


def inputs_of(meaning: Meaning) -> Iterator[str]:
    """The labels of the inputs in a meaning, once for each part."""
    return (found for name in meaning if (found := of_input(name)) is not None)
