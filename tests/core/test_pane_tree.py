"""Laws of panes merged ahead: whatever batches do, windows merged from nodes are those merged from panes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.position import Position
from tidemill.core.plan.slices import BatchRange
from tidemill.core.time.pane_tree import Node, PaneTree, levels_of, unite
from tidemill.core.time.panes import EvenPanes, Window
from tidemill.core.time.watermarks import BEGINNING, END

TABLE = "t"


@st.composite
def all_panes(draw: st.DrawFn) -> EvenPanes:
    slide = draw(st.sampled_from([1, 2, 3]))
    size = draw(st.integers(8 * slide, 24 * slide))
    return EvenPanes(size=size, slide=slide, offset=draw(st.integers(0, slide - 1)))


@given(all_panes(), st.integers(-100, 100), st.integers(-60, 60), st.integers(-60, 60))
def test_each_window_takes_each_of_its_panes_exactly_once(panes: EvenPanes, start: int, since: int, built: int) -> None:
    tree = PaneTree(panes=panes, since=since, built=built)
    window = panes.last_window_of(start)
    taken = Counter(
        pane
        for node in nodes_near(tree, window)
        if tree.has(node) and window.start in tree.window_starts(node)
        for pane in range(node.start, tree.end(node), panes.pane)
    )
    assert taken == Counter(panes.panes_of(window))


@given(all_panes(), st.integers(-100, 100), st.integers(0, 3))
def test_a_window_is_merged_from_twice_the_logarithm_of_its_panes(panes: EvenPanes, start: int, behind: int) -> None:
    window = panes.last_window_of(start)
    tree = PaneTree(panes=panes, since=BEGINNING, built=window.end - behind)
    parts = [n for n in nodes_near(tree, window) if tree.has(n) and window.start in tree.window_starts(n)]
    assert len(parts) <= 2 * levels_of(panes) + 1 + behind


@settings(max_examples=500)
@given(all_panes(), st.data(), st.integers(-80, 80), st.integers(1, 12))
def test_all_that_windows_and_nodes_take_is_read(panes: EvenPanes, data: st.DataObject, low: int, windows: int) -> None:
    since, built, further = (data.draw(st.integers(*edges)) for edges in ((-60, 60), (-60, 60), (0, 40)))
    tree, until = PaneTree(panes=panes, since=since, built=built), built + further
    window = panes.last_window_of(low)
    last = window.end + (windows - 1) * panes.slide
    reads = tree.reads([(window.start, last)], until)
    for node in nodes_near(tree, Window(min(window.start, built) - 40, max(last, until) + 40)):
        starts = tree.window_starts(node)
        for_window = any(w in starts for w in range(window.start, last - panes.size + 1, panes.slide))
        if tree.has(node) and (for_window or tree.grown(node, until)):
            assert any(a <= node.start < b for a, b in reads.get(node.level, ())), node


def test_an_hour_by_a_minute_reads_seven_nodes_of_sixty_panes() -> None:
    panes = EvenPanes(size=60, slide=1)
    read = []
    for end in range(1_000, 1_064):
        tree = PaneTree(panes=panes, since=BEGINNING, built=end - 1)
        spans = tree.reads([(end - 60, end)], end)
        starts = (
            (level, range(a + -a % tree.length(level), b, tree.length(level)))
            for level in spans
            for a, b in spans[level]
        )
        read.append(sum(len(nodes) for _, nodes in starts))
    assert max(read) <= 9
    assert sum(read) / len(read) < 7


@pytest.mark.parametrize(("size", "slide", "levels"), [(60, 60, 0), (60, 10, 0), (60, 7, 5), (56, 7, 3), (60, 1, 5)])
def test_only_panes_of_many_windows_are_merged_ahead(size: int, slide: int, levels: int) -> None:
    assert levels_of(EvenPanes(size=size, slide=slide)) == levels


def nodes_near(tree: PaneTree, window: Window) -> Iterator[Node]:
    for level in range(tree.levels + 1):
        first = tree.node_of(window.start, level).start
        yield from (Node(level, start) for start in range(first, window.end, tree.length(level)))


Row = tuple[int, int, int]
"""A batch, a time and how much it adds."""


@dataclass
class Store:
    """State and nodes as rows of slices, and a pipeline that is nothing but its position."""

    panes: EvenPanes
    lateness: int
    position: Position = field(default_factory=Position)
    history: dict[int, Position] = field(default_factory=dict)
    state: list[tuple[int, Node, int]] = field(default_factory=list)
    nodes: list[tuple[int, Node, int]] = field(default_factory=list)
    last: int = 0

    @property
    def tree(self) -> PaneTree:
        """As a batch finds it."""
        since = (self.position.merged_since or {}).get(TABLE)
        return PaneTree.of(self.panes, since=since, watermark=self.position.watermark, allowed_lateness=self.lateness)

    def visible(self, rows: list[tuple[int, Node, int]]) -> Counter[Node]:
        """What counts, by node."""
        found: Counter[Node] = Counter()
        for batch, node, value in rows:
            if (batch, 1) in self.position.slices:
                found[node] += value
        return found

    def batch(self, times: list[int], after: int, *, live: bool) -> None:
        """A batch that brings records and moves the watermark, if it is live: it writes state and nodes."""
        self.last += 1
        tree, own = self.tree, Counter(Node(0, self.panes.pane_of(t)) for t in times)
        until = max(tree.built, after) if live else tree.built
        grown: Counter[Node] = Counter()
        for node, value in (*self.visible(self.state).items(), *self.visible(self.nodes).items()):
            if tree.has(node):
                grown.update(dict.fromkeys(tree.grown(node, until), value))
        for node, value in own.items():
            grown.update(dict.fromkeys(tree.grown(node, until, alone=True), value))
        self.state += [(self.last, node, value) for node, value in own.items()]
        self.nodes += [(self.last, node, value) for node, value in grown.items()]
        if live:
            self.position = self.position.after(
                batch_id=self.last, attempt=1, topics={}, watermark=until, merged=[TABLE]
            )
        else:
            self.position = self.position.amended(batch_id=self.last, attempt=1)
        self.history[self.last] = self.position

    def backfill(self, times: list[int], batches: list[int]) -> None:
        """Reads again what some batches read: the slices of those are hidden."""
        self.last += 1
        self.state += [(self.last, Node(0, self.panes.pane_of(t)), 1) for t in times]
        hidden = tuple(BatchRange(b, b + 1) for b in batches) or (BatchRange(self.last, self.last + 1),)
        job = Backfill(since=self.last, left={}, supersedes=hidden, by="x").after(self.last, 1, {})
        self.position = self.position.backfilled(job, batch_id=self.last, attempt=1)
        self.history[self.last] = self.position

    def fold(self, batches: list[int]) -> None:
        """Makes one slice of some, of state and of the nodes that are still used."""
        self.last += 1
        chosen = self.position.slices.only(BatchRange(b, b + 1) for b in batches)
        tree = self.tree
        for rows, used in ((self.state, lambda n: True), (self.nodes, tree.has)):
            rows += [(self.last, n, v) for b, n, v in list(rows) if (b, 1) in chosen and used(n)]
        hidden = tuple(BatchRange(b, b + 1) for b in batches)
        self.position = self.position.amended(batch_id=self.last, attempt=1, hidden=hidden)
        self.history[self.last] = self.position

    def rewind(self, batch: int) -> None:
        """Back to what was after a batch."""
        self.last += 1
        self.position = self.history[batch].amended(batch_id=self.last, attempt=1)
        self.history[self.last] = self.position

    def check(self) -> None:
        """Every node that is there is the merge of its panes."""
        tree, state, nodes = self.tree, self.visible(self.state), self.visible(self.nodes)
        built = {n for n in nodes if n.level > tree.levels or not tree.has(n)}
        panes = Counter({n: v for n, v in nodes.items() if n not in built})
        expected: Counter[Node] = Counter()
        for pane, value in state.items():
            for level in range(1, tree.levels + 1):
                if tree.has(node := tree.node_of(pane.start, level)):
                    expected[node] += value
        assert panes == expected


STEPS = st.one_of(
    st.tuples(st.just("live"), st.lists(st.integers(-15, 8), max_size=4), st.integers(0, 12)),
    st.tuples(st.just("live"), st.lists(st.integers(-3, 3), max_size=4), st.integers(0, 2)),
    st.tuples(st.just("repair"), st.lists(st.integers(-60, 4), max_size=3), st.just(0)),
    st.tuples(st.just("backfill"), st.lists(st.integers(-60, 4), max_size=3), st.integers(1, 9)),
    st.tuples(st.just("fold"), st.just([]), st.integers(1, 9)),
    st.tuples(st.just("rewind"), st.just([]), st.integers(1, 9)),
    st.tuples(st.just("upgrade"), st.just([]), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@given(all_panes(), st.sampled_from([0, 5]), st.lists(STEPS, max_size=14))
def test_a_node_is_the_merge_of_its_panes_whatever_batches_did(
    panes: EvenPanes, lateness: int, steps: list[tuple[str, list[int], int]]
) -> None:
    store = Store(panes, lateness)
    for what, offsets, number in steps:
        mark = store.position.watermark if store.position.watermark != BEGINNING else 0
        times = [mark + t for t in offsets]
        recent = [b for b in range(max(store.last - number, 1), store.last + 1) if (b, 1) in store.position.slices]
        match what:
            case "live":
                store.batch(times, mark + number, live=True)
            case "repair":
                store.batch(times, mark, live=False)
            case "backfill":
                store.backfill(times, recent[: number // 2 + 1])
            case "fold" if len(recent) > 1:
                store.fold(recent[:-1])
            case "rewind" if store.last > number:
                store.rewind(store.last - number)
            case "upgrade":
                # A version that knew of no nodes committed last.
                store.position = Position(
                    **{f: getattr(store.position, f) for f in store.position.__slots__ if f != "merged_since"}
                )
        store.check()


def test_nothing_is_looked_at_behind_the_end() -> None:
    tree = PaneTree.of(EvenPanes(size=60, slide=1), since=0, watermark=END, allowed_lateness=0)
    assert not tree.has(Node(1, 0))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=6))
def test_united_ranges_hold_the_same_moments(ranges: list[tuple[int, int]]) -> None:
    moments = {m for low, high in ranges for m in range(low, high)}
    assert {m for low, high in unite(ranges) for m in range(low, high)} == moments
