"""What a batch reads, merges and builds for a sink whose panes are merged ahead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.time.pane_tree import Node, PaneTree, Span
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import END
from tidemill.engine.aggregate.firing import Firing
from tidemill.engine.aggregate.node_sql import of_nodes, spread_rows
from tidemill.engine.spark.query import ROWS
from tidemill.engine.storage.spread import Made, Spread
from tidemill.engine.storage.staged_rows import StagedRows
from tidemill.engine.storage.state_table import Part, node_predicates, pane_predicates

_EARLIEST, _LATEST = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999 in microseconds since 1970; all event times lie between."""

_MANY = 8
"""If the watermark passes more panes than this at once, nodes are built first and windows merged from them."""


@dataclass(frozen=True, kw_only=True)
class Ahead:
    """One sink in one batch: `tree` has the nodes that exist; the batch builds those that end at `until` or before."""

    sink: WindowedSink
    firing: Firing
    tree: PaneTree
    until: int

    @staticmethod
    def of(sink: WindowedSink, plan: BatchPlan, firing: Firing) -> Ahead:
        """The work of a batch that moves the watermark as `firing` says."""
        tree = tree_of(sink, plan)
        return Ahead(sink=sink, firing=firing, tree=tree, until=max(tree.built, firing.after))

    def reads(self, touched: Iterable[int]) -> tuple[Sequence[Part], Sequence[Part]]:
        """The rows of state, and the rows of nodes, that windows and new nodes are merged from."""
        found = self.tree.reads(self.firing.spans(self.sink, touched), self.until)
        spans = [(level, edges) for level, each in found.items() for span in each if (edges := edges_of(span))]
        panes = [pane_predicates(edges) for level, edges in spans if level == 0]
        return panes, [node_predicates(level, edges) for level, edges in spans if level > 0]

    def wants(self, touched: Iterable[int]) -> bool:
        """Whether a window or a new node needs rows that this batch brought to these panes."""
        panes = list(touched)
        above = any(self.tree.grown(Node(0, pane), self.until, alone=True) for pane in panes)
        return above or bool(self.firing.spans(self.sink, panes))

    def closes_many(self, rows: int, most: int) -> bool:
        """Whether so many panes close at once that merging each of them into all its windows costs too much."""
        panes = self.tree.panes
        return self.until - self.tree.built > _MANY * panes.pane and rows * self.firing.most_windows(panes) > most

    def most(self, rows: int, own: int) -> int:
        """The most rows that `spread` makes of `rows` rows, `own` of them from this batch."""
        levels = range(1, self.tree.levels + 1)
        closed = self.until - self.tree.built
        built = sum(min(-(-closed // self.tree.length(level)), 1) for level in levels)
        return rows * (self.firing.most_windows(self.tree.panes) + built) + own * len(levels)

    @property
    def first_nodes(self) -> Mapping[str, pa.Scalar]:
        """The bounds for a first step that only builds nodes."""
        return {**self.bounds, **_integers({"_first": 1, "_last": 0})}

    @property
    def from_nodes(self) -> Mapping[str, pa.Scalar]:
        """The bounds for a second step, in which the new nodes already exist."""
        return replace(self, tree=replace(self.tree, built=self.until)).bounds

    @property
    def bounds(self) -> Mapping[str, pa.Scalar]:
        """The bounds that `spread_rows` needs, as columns."""
        first, last = self.firing.starts(self.sink.even_panes)
        tree = {"_since": self.tree.since, "_built": self.tree.built, "_until": self.until}
        return _integers({**self.firing.bounds, **tree, "_first": first, "_last": last})

    def spread(self, bounds: Mapping[str, pa.Scalar]) -> Spread:
        """How rows with these bounds are spread over windows and nodes."""
        text, columns = spread_rows(ROWS, self.sink), of_nodes(self.sink)
        return Spread(made=partial(self._made, _values(bounds)), text=text, bounds=bounds, columns=columns)

    def _made(self, bounds: Mapping[str, int], node: Node, alone: bool) -> Sequence[Made]:
        tree, size = replace(self.tree, since=bounds["_since"], built=bounds["_built"]), self.tree.panes.size
        nodes = [Made(n.level, n.start, certain=True) for n in tree.grown(node, bounds["_until"], alone=alone)]
        starts = tree.window_starts(node, alone=alone)
        windows = []
        for start in within(starts, bounds["_first"], bounds["_last"]):
            on_time = bounds["_before"] < start + size <= bounds["_after"]
            if on_time or bounds["_refused_until"] < start + size <= bounds["_again_until"]:
                windows.append(Made(0, start, certain=on_time))
        return [*windows, *nodes]

    @property
    def ends(self) -> bool:
        """Whether the input has ended, so that no later batch uses nodes."""
        return self.until == END


def tree_of(sink: WindowedSink, plan: BatchPlan) -> PaneTree:
    """The nodes of a sink that a batch with this plan can use."""
    position = plan.position
    since = (position.merged_since or {}).get(sink.table)
    lateness, watermark = micros(sink.allowed_lateness), position.watermark_of(sink.table)
    return PaneTree.of(sink.even_panes, since=since, watermark=watermark, allowed_lateness=lateness)


def rows_for_nodes(
    sink: WindowedSink, staged: StagedRows, *, touched: bool, alone: bool = False, level: int | None = 0
) -> StagedRows:
    """Rows as `spread_rows` needs them: panes have `level` 0; rows of nodes keep their own level, with None."""
    if level is not None:
        staged = staged.stamped({"pane_level": pa.scalar(level, pa.int32())})
    columns = ("pane_level", "pane_start", *of_nodes(sink))
    flags = {"_touched": pa.scalar(touched), "_alone": pa.scalar(alone)}
    return staged.picked({c: c for c in columns}).stamped(flags)


def _integers(values: Mapping[str, int]) -> dict[str, pa.Scalar]:
    return {name: pa.scalar(value, pa.int64()) for name, value in values.items()}


def _values(bounds: Mapping[str, pa.Scalar]) -> Mapping[str, int]:
    return {name: value.as_py() for name, value in bounds.items()}


def within(starts: range, first: int, last: int) -> range:
    """The part of a range that lies between two values, both included."""
    step = starts.step
    low = starts.start + max(-(-(first - starts.start) // step), 0) * step
    return range(low, min(starts.stop, last + 1), step)


def edges_of(span: Span) -> tuple[int | None, int | None] | None:
    """The bounds of a span for a read; None is no bound. Instead of a pair, None if no event time lies in the span."""
    low, high = span
    if low >= _LATEST or high <= _EARLIEST:
        return None
    return None if low <= _EARLIEST else low, None if high >= _LATEST else high
