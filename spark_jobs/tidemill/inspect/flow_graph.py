"""The data flow of a pipeline as a drawing: what stands where, and how many records went along each edge.

The ledger counts records per topic and rows per table. So the number at an edge is known where only one count is
possible there: into a topic's decoder, out of it, along a path without a branch, into tables and side outputs. All
other edges have no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from tidemill.core.bind.flow import Flow
from tidemill.core.declare import operators as op
from tidemill.core.protocol.account import Account
from tidemill.core.time.times import show_duration
from tidemill.inspect.recent_batches import BatchFacts

QUARANTINE, LATE = "quarantine", "late"


class NodeKind(StrEnum):
    """What a node of the drawing stands for."""

    TOPIC = "topic"
    STEP = "step"
    TABLE = "table"
    ASIDE = "aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A box. `column` counts from the left, `row` from above; `detail` are lines below the title."""

    name: str
    kind: NodeKind
    title: str
    detail: tuple[str, ...] = ()
    column: int = 0
    row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flowing:
    """An edge. `count` is of records, or of rows if it leads into a table; None where it is not known.

    `share` is the part of the records of the step before that went along it.
    """

    source: str
    target: str
    count: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """The drawing, with counts summed over `batches` batches."""

    nodes: tuple[Node, ...]
    edges: tuple[Flowing, ...]
    batches: int

    @property
    def columns(self) -> int:
        """How many columns it has."""
        return 1 + max((n.column for n in self.nodes), default=0)

    @property
    def rows(self) -> int:
        """How many rows the highest column has."""
        return 1 + max((n.row for n in self.nodes), default=0)


def flow_graph(flow: Flow, batches: Sequence[BatchFacts]) -> FlowGraph:
    """Draw a pipeline, with what the committed ones of these batches counted."""
    counted = [b for b in batches if b.account is not None]
    drawing = _Drawing(flow)
    total = sum((b.account for b in counted if b.account is not None), Account())
    published: dict[str, int] = {}
    for batch in counted:
        for table, rows in batch.published.items():
            published[table] = published.get(table, 0) + rows
    edges = _counted(drawing, total, _by_topic(counted), published) if counted else drawing.edges
    return FlowGraph(nodes=_placed(drawing.nodes, edges), edges=tuple(edges), batches=len(counted))


def _by_topic(batches: Iterable[BatchFacts]) -> dict[str, Account]:
    found: dict[str, Account] = {}
    for batch in batches:
        for topic, account in batch.accounts.items():
            found[topic] = found.get(topic, Account()) + account
    return found


class _Drawing:
    """Nodes and edges without numbers. Grouping, windows and aggregation are one node."""

    def __init__(self, flow: Flow) -> None:
        self.graph = flow.spec.graph
        self.readers = {n: o for n, o in self.graph.operators.items() if isinstance(o, op.Read)}
        self.nodes: list[Node] = []
        self.edges: list[Flowing] = []
        for name in self.graph.in_order():
            if self._stands_for(name) == name:
                self._add(name)
        for edge in self.graph.edges:
            source, target = self._stands_for(edge.source), self._stands_for(edge.target)
            if source != target:
                self.edges.append(Flowing(source=source, target=target))
        self._add_side_outputs()

    def _stands_for(self, name: str) -> str:
        """The node that shows an operator: windows and their key are shown by the aggregation."""
        if isinstance(self.graph.operators[name], op.KeyBy | op.WindowBy):
            return self._stands_for(next(e.target for e in self.graph.edges if e.source == name))
        return name

    def _add(self, name: str) -> None:
        operator = self.graph.operators[name]
        if isinstance(operator, op.Read):
            topic = f"topic:{name}"
            self.nodes.append(Node(name=topic, kind=NodeKind.TOPIC, title=str(operator.topic)))
            self.edges.append(Flowing(source=topic, target=name))
        title, detail = _said(operator, [self.graph.operators[n] for n in self._before(name)])
        kind = NodeKind.TABLE if isinstance(operator, op.Publish) else NodeKind.STEP
        self.nodes.append(Node(name=name, kind=kind, title=title, detail=detail))

    def _before(self, name: str) -> list[str]:
        """The operators that an aggregation's node shows, too."""
        found = [e.source for e in self.graph.edges if e.target == name]
        grouping = [n for n in found if isinstance(self.graph.operators[n], op.KeyBy | op.WindowBy)]
        return [*grouping, *(n for g in grouping for n in self._before(g))]

    def _add_side_outputs(self) -> None:
        self.nodes.append(Node(name=QUARANTINE, kind=NodeKind.ASIDE, title="quarantine", detail=("rejected records",)))
        self.edges += [Flowing(source=name, target=QUARANTINE) for name in self.readers]
        windows = [n for n, o in self.graph.operators.items() if isinstance(o, op.AggregateBy)]
        if windows:
            self.nodes.append(Node(name=LATE, kind=NodeKind.ASIDE, title="late", detail=("refused by windows",)))
            self.edges += [Flowing(source=name, target=LATE) for name in windows]


def _said(  # noqa: C901  one case for each operator
    operator: op.Operator, grouping: Sequence[op.Operator]
) -> tuple[str, tuple[str, ...]]:
    match operator:
        case op.Read():
            return "decode", (f"contract {operator.contract}", operator.behind)
        case op.Behind(by):
            return "behind", (f"delay {show_duration(by)} longer",)
        case op.Filter():
            return "filter", (operator.predicate,)
        case op.WithColumns():
            return "columns", tuple(operator.columns)
        case op.Select():
            return "select", (", ".join(operator.columns),)
        case op.Split():
            return "split", tuple(f"{port}: {text}" for port, text in operator.routes.items())
        case op.Discard():
            return "discard", ("counted as filtered",)
        case op.AggregateBy():
            keys = [", ".join(g.columns) for g in grouping if isinstance(g, op.KeyBy)]
            windows = [str(g.spec) for g in grouping if isinstance(g, op.WindowBy)]
            return "windows", (*windows, *(f"by {key}" for key in keys), ", ".join(operator.aggregates))
        case op.Publish():
            return operator.table, (f"contract {operator.contract}",)
        case op.Union() | op.KeyBy() | op.WindowBy():
            return "union" if isinstance(operator, op.Union) else "group", ()
        case _:
            assert_never(operator)


def _counted(
    drawing: _Drawing, total: Account, topics: Mapping[str, Account], published: Mapping[str, int]
) -> list[Flowing]:
    """The edges with the counts that are known for certain."""
    accepted: dict[str, int] = {}
    found = []
    for edge in drawing.edges:
        reader = drawing.readers.get(edge.target) or drawing.readers.get(edge.source)
        account = total if reader is None else _of_reader(reader, topics)
        before = after = None
        if edge.target in drawing.readers:
            after = account.read
        elif edge.target == QUARANTINE:
            before, after = account.read, account.rejected
        elif edge.target == LATE:
            after = total.late if sum(e.target == LATE for e in drawing.edges) == 1 else None
        elif isinstance(sink := drawing.graph.operators[edge.target], op.Publish):
            after = published.get(sink.table, 0)
        elif reader is not None:
            before, after = account.read, account.read - account.rejected - account.shed
            accepted[edge.source] = after
        found.append(replace(edge, count=after, share=after / before if before and after is not None else None))
    return _along(drawing, found, total) if len(drawing.readers) == 1 else found


def _of_reader(reader: op.Read, topics: Mapping[str, Account]) -> Account:
    return sum((account for topic, account in topics.items() if reader.takes(topic)), Account())


def _along(drawing: _Drawing, edges: list[Flowing], total: Account) -> list[Flowing]:
    """Numbers along a path that does not branch: what enters the windows was aggregated or late."""
    steps = [e for e in edges if e.target not in (QUARANTINE, LATE) and not e.source.startswith("topic:")]
    if len({e.source for e in steps}) < len(steps):
        return edges
    entered, accepted = total.aggregated + total.late, total.read - total.rejected - total.shed
    filters = [n for n, o in drawing.graph.operators.items() if isinstance(o, op.Filter | op.Discard)]
    last = max((i for i, e in enumerate(edges) if e.source in filters), default=None)
    found = []
    for index, edge in enumerate(edges):
        if edge.count is not None or edge not in steps:
            found.append(edge)
        elif last is None:
            found.append(replace(edge, count=accepted))
        elif len(filters) == 1 and edge.source == filters[0]:
            found.append(replace(edge, count=entered, share=entered / accepted if accepted else None))
        else:
            known = accepted if len(filters) == 1 and index < last else entered if index >= last else None
            found.append(replace(edge, count=known))
    return found


def _placed(nodes: Sequence[Node], edges: Sequence[Flowing]) -> tuple[Node, ...]:
    """The nodes in columns: each stands to the right of all that feed it."""
    column: dict[str, int] = {}
    for node in nodes:
        before = [column[e.source] for e in edges if e.target == node.name and e.source in column]
        column[node.name] = 1 + max(before, default=-1)
    taken: dict[int, int] = {}
    found = []
    for node in nodes:
        at = column[node.name]
        found.append(replace(node, column=at, row=taken.get(at, 0)))
        taken[at] = taken.get(at, 0) + 1
    return tuple(found)
