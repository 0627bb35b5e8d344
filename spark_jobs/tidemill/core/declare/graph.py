"""The data flow graph of a pipeline: named operators, and edges between their ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tidemill.core.declare.operators import AggregateBy, KeyBy, Operator, WindowBy
from tidemill.core.declare.ports import input_ports, output_ports
from tidemill.core.errors import DeclarationError

_LEFT = {
    KeyBy: ".window(...).aggregate(...).publish(...)",
    WindowBy: ".aggregate(...).publish(...)",
    AggregateBy: ".publish(...)",
}
"""The steps that still follow a step which cannot end a stream."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows go from an output port to an input port."""

    source: str
    source_port: str
    target: str
    target_port: str

    def __str__(self) -> str:
        return f"{self.source}.{self.source_port} -> {self.target}.{self.target_port}"


@dataclass(frozen=True, slots=True)
class Step:
    """One operator on a path, and the output port through which the path leaves it."""

    name: str
    operator: Operator
    port: str


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators by name, and the edges between them. `places` says where each was declared, as "file:line"."""

    operators: Mapping[str, Operator]
    edges: tuple[Edge, ...]
    places: Mapping[str, str]

    def __post_init__(self) -> None:
        self._check_edges()
        self._check_inputs()
        self._check_cycles()
        self._check_outputs()

    def where(self, name: str) -> str:
        """The operator's name and the place of its declaration, for messages."""
        place = self.places.get(name)
        return f"`{name}` ({place})" if place else f"`{name}`"

    def _check_edges(self) -> None:
        for edge in self.edges:
            for name, port, ports, kind in (
                (edge.source, edge.source_port, output_ports, "output"),
                (edge.target, edge.target_port, input_ports, "input"),
            ):
                operator = self.operators.get(name)
                if operator is None:
                    raise DeclarationError(f"edge {edge}: there is no operator `{name}`")
                if port not in ports(operator):
                    has = ", ".join(ports(operator)) or "none"
                    raise DeclarationError(
                        f"edge {edge}: {self.where(name)} has no {kind} port `{port}`, it has: {has}"
                    )

    def _check_inputs(self) -> None:
        fed = [(e.target, e.target_port) for e in self.edges]
        for name, operator in self.operators.items():
            for port in input_ports(operator):
                count = fed.count((name, port))
                if count != 1:
                    raise DeclarationError(
                        f"input port `{port}` of {self.where(name)} is fed by {count} edges, expected one",
                        fix="use union to merge streams" if count else "connect it to a stream",
                    )

    def _check_cycles(self) -> None:
        try:
            TopologicalSorter(self._predecessors()).prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise DeclarationError(f"the operators form a cycle: {cycle}", fix="remove one of these edges") from None

    def _check_outputs(self) -> None:
        used = {(e.source, e.source_port) for e in self.edges}
        for name, operator in self.operators.items():
            for port in output_ports(operator):
                if (name, port) not in used:
                    raise self._unused(name, operator, port)

    def _unused(self, name: str, operator: Operator, port: str) -> DeclarationError:
        if isinstance(operator, KeyBy | WindowBy | AggregateBy):
            return DeclarationError(f"{self.where(name)} leads nowhere", fix=f"end it with {_LEFT[type(operator)]}")
        rows = f"output port `{port}` of {self.where(name)}" if len(output_ports(operator)) > 1 else self.where(name)
        return DeclarationError(
            f"{rows} leads nowhere: its rows would be lost",
            fix="publish it, use it in another operator, or end it with .discard()",
        )

    def _predecessors(self) -> dict[str, set[str]]:
        graph: dict[str, set[str]] = {name: set() for name in self.operators}
        for edge in self.edges:
            graph[edge.target].add(edge.source)
        return graph

    def in_order(self) -> tuple[str, ...]:
        """Names of the operators, each after those that feed it; the order is always the same for the same graph."""
        sorter = TopologicalSorter({name: sorted(before) for name, before in sorted(self._predecessors().items())})
        return tuple(sorter.static_order())

    def feeding(self, name: str) -> tuple[Edge, ...]:
        """The edges into an operator, in the order of its ports."""
        ports = input_ports(self.operators[name])
        edges = (e for e in self.edges if e.target == name)
        return tuple(sorted(edges, key=lambda e: ports.index(e.target_port)))

    def paths(self, source: str, target: str) -> tuple[tuple[Step, ...], ...]:
        """Every path from a read to another operator, without its two ends.

        A row that can take several paths reaches the target once on each.
        """
        return tuple(self._paths_back(target, source))

    def _paths_back(self, name: str, source: str) -> Iterator[tuple[Step, ...]]:
        for edge in self.feeding(name):
            if edge.source == source:
                yield ()
                continue
            step = Step(edge.source, self.operators[edge.source], edge.source_port)
            for before in self._paths_back(edge.source, source):
                yield (*before, step)
