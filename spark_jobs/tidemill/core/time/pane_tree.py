"""Panes merged ahead in powers of two, so that a sliding window is merged from few rows per key.

A *node* of level k is the merge of 2**k neighbouring panes. It is built by the batch that moves the watermark past its
end, and from then on every batch that brings a late record to one of its panes adds a row to the node as well. So at
every commit, a node that ends at the watermark or before it is the merge of its visible rows, as a pane is; no other
node is used. `since` forgets nodes: those that start earlier are never looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidemill.core.time.watermarks import BEGINNING, END
from tidemill.core.time.windows import Panes

LEAST_OVERLAP = 8
"""Panes that belong to fewer windows are not worth merging ahead."""

Span = tuple[int, int]
"""Half-open, in microseconds."""


def levels_of(panes: Panes) -> int:
    """The highest level of nodes: the largest that fits into a window; 0 when none are worth it."""
    return (panes.size // panes.pane).bit_length() - 1 if panes.overlap >= LEAST_OVERLAP else 0


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The panes merged from `start` on: 2**level of them. At level 0 it is a pane itself."""

    level: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneTree:
    """The nodes that a batch finds: those that start at `since` or later and end at `built` or before."""

    panes: Panes
    since: int
    built: int

    @staticmethod
    def of(panes: Panes, *, since: int | None, watermark: int, allowed_lateness: int) -> PaneTree:
        """The nodes at a position whose watermark this is; `since` None when none were built before it.

        Nodes that only closed windows contain are left out, so that they can be removed.
        """
        begin = watermark if since is None else since
        return PaneTree(panes=panes, since=max(begin, forgotten(panes, watermark, allowed_lateness)), built=watermark)

    @property
    def levels(self) -> int:
        """The highest level there is."""
        return levels_of(self.panes)

    def length(self, level: int) -> int:
        """How much event time a node covers."""
        return self.panes.pane << level

    def node_of(self, time: int, level: int) -> Node:
        """The node of a level that contains `time`."""
        return Node(level, time - (time - self.panes.offset) % self.length(level))

    def end(self, node: Node) -> int:
        """Where a node ends."""
        return node.start + self.length(node.level)

    def parent(self, node: Node) -> Node:
        """The node of the next level that contains it."""
        return self.node_of(node.start, node.level + 1)

    def has(self, node: Node) -> bool:
        """Whether a node can be used. Panes always can."""
        return node.level == 0 or (self._is_young(node) and self.end(node) <= self.built)

    def _is_young(self, node: Node) -> bool:
        return node.level <= self.levels and node.start >= self.since

    def window_starts(self, node: Node, *, alone: bool = False) -> range:
        """Where the windows start that are merged from this node: those that contain it, but not a parent to use.

        Rows of this batch stand `alone`: no node has them yet, so that every window takes them from their pane.
        """
        slide, size, offset = self.panes.slide, self.panes.size, self.panes.offset
        low, high = self.end(node) - size, node.start
        parent = self.parent(node)
        if not alone and self.has(parent):
            # A left child is taken by windows that end inside its sibling, a right one by those that start inside it.
            if parent.start == node.start:
                high = min(high, self.end(parent) - size - 1)
            else:
                low = max(low, parent.start + 1)
        return range(low + (offset - low) % slide, high + 1, slide)

    def grown(self, node: Node, until: int, *, alone: bool = False) -> tuple[Node, ...]:
        """The nodes that get this one's rows when nodes up to `until` are built.

        Rows of this batch stand `alone`: those that are there already get them, too.
        """
        if not alone and self.has(self.parent(node)):
            return ()
        above = (self.node_of(node.start, level) for level in range(node.level + 1, self.levels + 1))
        return tuple(
            n for n in above if self._is_young(n) and self.end(n) <= until and (alone or self.end(n) > self.built)
        )

    def reads(self, ranges: Iterable[Span], until: int) -> Mapping[int, tuple[Span, ...]]:
        """Where the nodes start, by level, that make up the windows inside `ranges` and the nodes built up to `until`.

        A few more may lie there: `window_starts` and `grown` say what a row is for.
        """
        spans: dict[int, list[Span]] = {level: [] for level in range(self.levels + 1)}
        for low, high in ranges:
            for level in spans:
                spans[level] += self._read(level, low, high)
        for level in spans if until > self.built else ():
            spans[level] += self._read_to_build(level, until)
        return {level: united for level, found in spans.items() if (united := unite(found))}

    def _read(self, level: int, low: int, high: int) -> list[Span]:
        """Nodes of a level that windows inside `[low, high)` are merged from."""
        length = self.length(level)
        if high - low < self.panes.size:
            return []
        whole = (low, high - length + 1)
        if level == self.levels:
            return self._there(level, [whole])
        parents_gone = [(low, self.since + length), (self.built - 2 * length + 1, high)]
        left = (low + self.panes.size - 2 * length, high - length + 1)
        right = (low, high - self.panes.size + length)
        return self._there(level, [_both(whole, part) for part in (left, right, *parents_gone)])

    def _read_to_build(self, level: int, until: int) -> list[Span]:
        """Nodes of a level whose parent is not built, and is by now."""
        length = self.length(level)
        low, high = self.built - 2 * length + 1, until - length + 1
        young = [_both((low, high), (self.since, END))]
        return self._there(level, young) if level < self.levels else []

    def _there(self, level: int, spans: Iterable[Span]) -> list[Span]:
        there = (self.since, self.built - self.length(level) + 1) if level else (BEGINNING, END)
        return [_both(span, there) for span in spans]


def forgotten(panes: Panes, watermark: int, allowed_lateness: int) -> int:
    """Windows that start before this are closed for good at a watermark, and so are nodes."""
    return max(watermark - allowed_lateness - panes.size, BEGINNING)


def _both(one: Span, other: Span) -> Span:
    return max(one[0], other[0]), min(one[1], other[1])


def unite(ranges: Iterable[Span]) -> tuple[Span, ...]:
    """The same moments in as few ranges as possible, sorted; empty ones are left out."""
    united: list[Span] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(united)
