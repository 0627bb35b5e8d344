"""Which slices are worth joining into one: those of many batches that hold state of the same panes.

A fold publishes nothing and moves nothing, but it has a price. After it, offsets of one of its batches cannot be read
again without those of the others; and its own batch id splits the ranges of ids that a position hides. So batches are
folded in groups of neighbours, and only when many groups wait: then the folds get consecutive ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tidemill.core.bind.firing_sink import FiringSink
from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.history.coverage import Cover
from tidemill.core.plan.position import Position
from tidemill.core.time.panes import Panes
from tidemill.core.time.spans import PaneSpan, united_spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """When slices are folded.

    A fold takes the batches whose ids divided by `group` give the same quotient, once no more batches of that group can
    come. It is worth it when, on average, at least `overlap` of its slices hold a pane. At least `groups` groups are
    folded one after the other, and none while a position hides more than `most_hidden` ranges of batches. Batches that
    are `reach` ids behind the newest are not considered again: they had their chance, unless nothing was folded for 45
    days of one batch a minute.
    """

    group: int = 64
    overlap: float = 4.0
    groups: int = 16
    most_hidden: int = 512
    reach: int = 65_536

    def due(self, flow: Flow, position: Position, covers: Sequence[Cover]) -> tuple[tuple[Cover, ...], ...]:
        """The groups to fold, oldest first.

        Empty while a backfill is open, because it may supersede some of them; and while the declaration lacks a table
        that has state, because the table may come back.
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
        since = position.firings_from or 1
        found = tuple(group for group in complete if len(group) > 1 and self._is_worth_it(flow, group, since))
        return found if len(found) >= self.groups else ()

    def _is_worth_it(self, flow: Flow, group: Sequence[Cover], firings_from: int) -> bool:
        for sink in flow.sinks:
            if isinstance(sink, WindowedSink):
                spans = [c.panes[sink.table] for c in group if sink.table in c.panes]
                panes = sink.window.panes
                if spans and _count(spans, panes) >= self.overlap * _count(united_spans(spans), panes):
                    return True
            elif isinstance(sink, FiringSink) and sum(c.batch_id >= firings_from for c in group) >= self.overlap:
                # All state of ordered windows lies in one place, and each batch reads all of it.
                return True
        return False


def _count(spans: Sequence[PaneSpan], panes: Panes) -> int:
    return sum(panes.panes_between(s.first, s.last) for s in spans)
