"""Where boxes and lines of the data flow's drawing lie, in units of its SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.inspect.flow_graph import FlowGraph, Flowing, Node
from tidemill_airflow.pages.shown import number, share

WIDTH, GAP, LINE, PAD, SPACE = 156, 76, 16, 10, 22
_LETTERS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node: its corner, its height, and the lines of its text, each short enough to fit."""

    node: Node
    x: int
    y: int
    height: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An edge: the path of its curve, and its label in two lines with their middle."""

    edge: Flowing
    path: str
    x: float
    y: float
    label: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A drawing of `width` times `height`."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    batches: int
    box: int = WIDTH


def drawing_of(graph: FlowGraph) -> Drawing:
    """Lay a graph out in columns."""
    boxes: dict[str, Box] = {}
    filled: dict[int, int] = {}
    for node in graph.nodes:
        lines = tuple(_short(line) for line in node.detail[:4])
        height = 2 * PAD + LINE * (1 + len(lines))
        y = filled.get(node.column, SPACE)
        filled[node.column] = y + height + SPACE
        boxes[node.name] = Box(node=node, x=node.column * (WIDTH + GAP) + 2, y=y, height=height, lines=lines)
    drawn = tuple(_line(edge, boxes[edge.source], boxes[edge.target]) for edge in graph.edges)
    width = graph.columns * WIDTH + (graph.columns - 1) * GAP + 4
    return Drawing(
        boxes=tuple(boxes.values()),
        lines=drawn,
        width=width,
        height=max(filled.values(), default=0),
        batches=graph.batches,
    )


def _line(edge: Flowing, source: Box, target: Box) -> Line:
    x1, y1 = source.x + WIDTH, source.y + source.height / 2
    x2, y2 = target.x, target.y + target.height / 2
    bend = GAP / 2
    label = _label(edge)
    return Line(
        edge=edge,
        path=f"M{x1},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2},{y2:g}",
        x=x2 - GAP / 2,
        y=(y1 + y2) / 2 if x2 - x1 <= GAP else y2,
        label=label,
    )


def _label(edge: Flowing) -> tuple[str, ...]:
    if edge.count is None:
        return ()
    return (number(edge.count), share(edge.share)) if edge.share is not None else (number(edge.count),)


def _short(line: str) -> str:
    return line if len(line) <= _LETTERS else f"{line[: _LETTERS - 1]}…"


def names(boxes: Sequence[Box]) -> dict[str, str]:
    """The title of each node by its name, for those who cannot see the drawing."""
    return {box.node.name: box.node.title for box in boxes}
