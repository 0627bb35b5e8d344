"""Panes merged ahead in powers of two, so that a sliding window merges few rows per key.

A *node* of level k is the merge of 2**k neighbouring panes. The batch that moves the watermark past the node's end
builds it. From then on, every batch that brings a late record to one of its panes also adds a row to the node. So at
every commit, a node that ends at the watermark or before is the merge of its visible rows, as a pane is; no other node
is used. Nodes that start before `since` are never used again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tidemill.core.time.panes import EvenPanes, Panes
from tidemill.core.time.watermarks import BEGINNING, END

LEAST_OVERLAP = 8
"""Panes that belong to fewer windows than this are not worth merging ahead."""

_FEW = 8
"""For up to this many windows of a range the nodes to read are found one by one; else by ranges with a few more."""

Span = tuple[int, int]
"""A half-open range of event times in microseconds."""


def levels_of(panes: Panes) -> int:
    """The highest level whose nodes fit into a window; 0 when merging ahead is not worth it."""
    if not isinstance(panes, EvenPanes) or panes.overlap < LEAST_OVERLAP:
        return 0
    return (panes.size // panes.pane).bit_length() - 1


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """The merge of 2**level panes from `start` on. At level 0 it is a pane."""

    level: int
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PaneTree:
    """The nodes that a batch can use: those that start at `since` or later and end at `built` or before."""

    panes: EvenPanes
    since: int
    built: int

    @staticmethod
    def of(panes: EvenPanes, *, since: int | None, watermark: int, allowed_lateness: int) -> PaneTree:
        """The nodes at a position with this watermark; `since` is None when no node was built before.

        Nodes that only belong to closed windows are left out, so that they can be removed.
        """
        begin = watermark if since is None else since
        return PaneTree(panes=panes, since=max(begin, forgotten(panes, watermark, allowed_lateness)), built=watermark)

    @property
    def levels(self) -> int:
        """The highest level of nodes."""
        return levels_of(self.panes)

    def length(self, level: int) -> int:
        """How much event time a node of this level covers, in microseconds."""
        return self.panes.pane << level

    def node_of(self, time: int, level: int) -> Node:
        """The node of a level that contains `time`."""
        return Node(level, time - (time - self.panes.offset) % self.length(level))

    def end(self, node: Node) -> int:
        """The end of a node, exclusive."""
        return node.start + self.length(node.level)

    def parent(self, node: Node) -> Node:
        """The node of the next level that contains `node`."""
        return self.node_of(node.start, node.level + 1)

    def has(self, node: Node) -> bool:
        """Whether a node can be used; panes always can."""
        return node.level == 0 or (self._is_young(node) and self.end(node) <= self.built)

    def _is_young(self, node: Node) -> bool:
        return node.level <= self.levels and node.start >= self.since

    def window_starts(self, node: Node, *, alone: bool = False) -> range:
        """The starts of the windows that use this node: they contain it, but no parent that can be used.

        Rows of this batch are `alone`: no node holds them yet, so every window takes them from their pane.
        """
        slide, size, offset = self.panes.slide, self.panes.size, self.panes.offset
        low, high = self.end(node) - size, node.start
        parent = self.parent(node)
        if not alone and self.has(parent):
            # Windows that end in the sibling use a left child; windows that start in the sibling use a right one.
            if parent.start == node.start:
                high = min(high, self.end(parent) - size - 1)
            else:
                low = max(low, parent.start + 1)
        return range(low + (offset - low) % slide, high + 1, slide)

    def grown(self, node: Node, until: int, *, alone: bool = False) -> tuple[Node, ...]:
        """The nodes that get rows of this node when nodes up to `until` are built.

        Rows of this batch are `alone`: nodes that exist already get them, too.
        """
        if not alone and self.has(self.parent(node)):
            return ()
        above = (self.node_of(node.start, level) for level in range(node.level + 1, self.levels + 1))
        return tuple(
            n for n in above if self._is_young(n) and self.end(n) <= until and (alone or self.end(n) > self.built)
        )

    def reads(self, ranges: Iterable[Span], until: int) -> Mapping[int, tuple[Span, ...]]:
        """The starts of the nodes to read, by level: for windows inside `ranges`, and for nodes to build up to `until`.

        The ranges may contain a few more nodes: `window_starts` and `grown` say what each row is for.
        """
        spans: dict[int, list[Span]] = {level: [] for level in range(self.levels + 1)}
        for low, high in ranges:
            if (high - low - self.panes.size) // self.panes.slide < _FEW:
                for node in self._used(low, high):
                    spans[node.level].append((node.start, node.start + 1))
                continue
            for level in spans:
                spans[level] += self._read(level, low, high)
        for level in spans if until > self.built else ():
            spans[level] += self._read_to_build(level, until)
        return {level: united for level, found in spans.items() if (united := unite(found))}

    def _used(self, low: int, high: int) -> Iterator[Node]:
        """The nodes that windows inside `[low, high)` use, one window after the other."""
        first = low + (self.panes.offset - low) % self.panes.slide
        for start in range(first, high - self.panes.size + 1, self.panes.slide):
            time, end = start, start + self.panes.size
            while time < end:
                node = Node(0, time)
                while self.has(above := self.parent(node)) and start <= above.start and self.end(above) <= end:
                    node = above
                yield node
                time = self.end(node)

    def _read(self, level: int, low: int, high: int) -> list[Span]:
        """Where the nodes of a level start that windows inside `[low, high)` use."""
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
        """Where the nodes of a level start whose parents are built now: those that end after `built`, up to `until`."""
        length, twice, offset = self.length(level), self.length(level + 1), self.panes.offset
        first, last = self.built - (self.built - offset) % twice + twice, until - (until - offset) % twice
        if level == self.levels or first > last:
            return []
        return self._there(level, [_both((first - twice, last - length + 1), (self.since, END))])

    def _there(self, level: int, spans: Iterable[Span]) -> list[Span]:
        there = (self.since, self.built - self.length(level) + 1) if level else (BEGINNING, END)
        return [_both(span, there) for span in spans]


def forgotten(panes: EvenPanes, watermark: int, allowed_lateness: int) -> int:
    """An event time: windows and nodes that start before it are closed for good at this watermark."""
    return max(watermark - allowed_lateness - panes.size, BEGINNING)


def _both(one: Span, other: Span) -> Span:
    return max(one[0], other[0]), min(one[1], other[1])


def unite(ranges: Iterable[Span]) -> tuple[Span, ...]:
    """These event times in as few ranges as possible, sorted; empty ranges are left out."""
    united: list[Span] = []
    for low, high in sorted(ranges):
        if low >= high:
            continue
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(united)
