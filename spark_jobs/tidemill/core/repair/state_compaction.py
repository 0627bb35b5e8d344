"""Which slices are worth making one: those of many batches that hold state of the same panes.

A fold publishes nothing and moves nothing, but it has a price: offsets of one of its batches cannot be read again
without those of the others, and its batch id parts the ids that a position hides. So batches are folded in groups of
neighbours, and only once many groups wait, whose folds then have ids in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tidemill.core.bind.flow import Flow, WindowedSink
from tidemill.core.history.coverage import Cover
from tidemill.core.plan.position import Position
from tidemill.core.time.spans import PaneSpan, united_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """When slices are folded.

    A fold takes the batches whose ids divided by `group` are equal, once no batch of that group can follow. It is worth
    it when a pane lies in `overlap` of its slices or more, on average. At least `groups` of them are folded in a row,
    and none while a position hides more than `most_hidden` ranges of batches. Batches that are `reach` ids behind the
    newest are not looked at any more: they were, unless nothing was folded for 45 days of a batch a minute.
    """

    group: int = 64
    overlap: float = 4.0
    groups: int = 16
    most_hidden: int = 512
    reach: int = 65_536

    def due(self, flow: Flow, position: Position, covers: Sequence[Cover]) -> tuple[tuple[Cover, ...], ...]:
        """The groups to fold, oldest first.

        None while a backfill is open, which may supersede some of them, or of a declaration without a table that has
        state: it may come back.
        """
        tables = {sink.table for sink in flow.sinks}
        if (
            position.backfill is not None
            or position.shapes.keys() - tables
            or len(position.slices.hidden) > self.most_hidden
        ):
            return ()
        newest = position.batch_id // self.group
        by_group = groupby((c for c in covers if c.batch.folded is None), lambda c: c.batch_id // self.group)
        complete = [tuple(group) for number, group in by_group if number < newest]
        found = tuple(group for group in complete if len(group) > 1 and self._is_worth_it(flow, group))
        return found if len(found) >= self.groups else ()

    def _is_worth_it(self, flow: Flow, group: Sequence[Cover]) -> bool:
        for sink in flow.sinks:
            if isinstance(sink, WindowedSink):
                spans = [c.panes[sink.table] for c in group if sink.table in c.panes]
                pane = sink.window.panes.pane
                if spans and _panes(spans, pane) >= self.overlap * _panes(united_spans(spans), pane):
                    return True
        return False


def _panes(spans: Sequence[PaneSpan], pane: int) -> int:
    return sum((s.last - s.first) // pane + 1 for s in spans)
