"""From which columns of records the columns of a published table come, as the declaration says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow, Input
from tidemill.core.bind.sinks import RowSink, Sink, WindowedSink
from tidemill.core.declare import operators as op
from tidemill.core.declare.aggregate_columns import columns_read
from tidemill.core.declare.columns import RECORD_COLUMNS
from tidemill.core.declare.graph import Step
from tidemill.core.sql.expressions import columns_of, named_alone


class Way(StrEnum):
    """How a column of a record reaches a table. FILTER, GROUP and WINDOW decide about rows; the others give values."""

    IDENTITY = "identity"
    TRANSFORMATION = "transformation"
    AGGREGATION = "aggregation"
    FILTER = "filter"
    GROUP = "group"
    WINDOW = "window"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A column of the records of one input, and the way that it takes."""

    column: str
    way: Way


@dataclass(slots=True)
class Origins:
    """Where a table comes from, as far as one input is concerned: its columns by name, and which rows it has."""

    columns: dict[str, set[Origin]] = field(default_factory=dict)
    rows: set[Origin] = field(default_factory=set)


def origins(sink: Sink, source: Input) -> Origins:
    """Where the columns and rows of a table come from, of those of one input; empty if it does not lead there.

    Only what the declaration names: that a contract rejects records by a column is not told.
    """
    found = Origins(columns={name: set() for name in sink.contract.columns})
    for path in sink.paths.get(source.name, ()):
        _Walk.along(path, source).end(sink, source.event_time or "_timestamp", found)
    return found


def input_of(flow: Flow, topic: str) -> Input | None:
    """The input of a pipeline that reads a topic, by its name or by a pattern; None if there is none now."""
    reads = flow.spec.graph.operators
    for source in flow.sources:
        read = reads.get(source.name)
        if source.topic == topic or (isinstance(read, op.Read) and read.takes(topic)):
            return source
    return None


@dataclass(slots=True)
class _Walk:
    """What is known on the way: for each column, in lower case, where its values come from, and what chose the rows."""

    columns: dict[str, frozenset[Origin]]
    rows: set[Origin] = field(default_factory=set)

    @staticmethod
    def along(path: Sequence[Step], source: Input) -> _Walk:
        names = (*source.contract.columns, *RECORD_COLUMNS)
        walk = _Walk({name.lower(): frozenset({Origin(name, Way.IDENTITY)}) for name in names})
        for step in path:
            walk._pass(step.operator)
        return walk

    def _pass(self, operator: op.Operator) -> None:
        match operator:
            case op.Filter(predicate):
                self.rows |= self._of(columns_of(predicate), Way.FILTER)
            case op.Split(routes=routes):
                self.rows |= self._of((c for text in routes.values() for c in columns_of(text)), Way.FILTER)
            case op.WithColumns(columns):
                self.columns |= {name.lower(): self._computed(text) for name, text in columns.items()}
            case _:
                # Selections and unions only name columns; keys and windows belong to the table.
                pass

    def _computed(self, text: str) -> frozenset[Origin]:
        alone = named_alone(text)
        if alone is not None and alone.lower() in self.columns:
            return self.columns[alone.lower()]
        return self._of(columns_of(text), Way.TRANSFORMATION)

    def _of(self, names: Iterable[str], way: Way) -> frozenset[Origin]:
        """The columns of records that these names came from, and that they came in this way."""
        return frozenset(Origin(o.column, way) for name in names for o in self.columns.get(name.lower(), ()))

    def end(self, sink: Sink, event_time: str, found: Origins) -> None:
        found.rows |= self.rows
        match sink:
            case RowSink(columns=columns):
                self._add(found, {name: self.columns.get(name.lower(), frozenset()) for name in columns})
            case WindowedSink() | FiringSink():
                time = self._of([event_time], Way.TRANSFORMATION)
                read = {name: columns_read(each) for name, each in sink.aggregates.items()}
                parts = {name: self._of(columns, Way.AGGREGATION) for name, columns in read.items()}
                parts |= dict.fromkeys(sink.bounds, time) | {
                    key: self.columns.get(key.lower(), frozenset()) for key in sink.keys
                }
                results = _Walk({name.lower(): origin for name, origin in parts.items()})
                for step in sink.results:
                    results._pass(step)
                found.rows |= results.rows
                self._add(found, {n: results.columns.get(n.lower(), frozenset()) for n in found.columns})
                found.rows |= self._of(sink.keys, Way.GROUP) | self._of([event_time], Way.WINDOW)

    @staticmethod
    def _add(found: Origins, columns: Mapping[str, Iterable[Origin]]) -> None:
        for name, known in columns.items():
            found.columns.setdefault(name, set()).update(known)
