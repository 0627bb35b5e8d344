"""Which windows may lack records that the log lost before they were read."""

from __future__ import annotations

from collections.abc import Mapping

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.time.spans import PaneSpan
from tidemill.core.time.times import micros
from tidemill.core.time.watermarks import BEGINNING


def incomplete(flow: Flow, plan: BatchPlan, after: Position) -> Mapping[str, PaneSpan]:
    """Where such windows start, by published table; `after` is the position that the plan leads to.

    This batch would have read the records that it skips. So every window that still takes records counts, up to the
    newest event time in the partitions that lost records. A lost record that was further out of order may lie outside.
    """
    skipped = plan.live.skipped if plan.live is not None else None
    lost = {r.topic_partition for r in skipped or ()}
    newest = [time for tp, clock in after.clocks.items() if tp in lost and (time := clock.max_event_time) is not None]
    if not newest:
        return {}
    topics = {tp.topic for tp in lost}
    names = {i.name for i in flow.inputs if i.topic in topics}
    windowed = (s for s in flow.sinks if isinstance(s, WindowedSink) and s.start and names & s.paths.keys())
    return {sink.table: _span(sink, plan.position, max(newest)) for sink in windowed}


def _span(sink: WindowedSink, before: Position, newest: int) -> PaneSpan:
    panes = sink.window.panes
    known = [c.max_event_time for c in before.clocks.values() if c.max_event_time is not None]
    watermark = before.watermark_of(sink.table)
    oldest = min([newest, *known]) if watermark == BEGINNING else watermark - micros(sink.allowed_lateness)
    if sink.merging and sink.table in (before.open_since or {}):
        oldest = min(oldest, (before.open_since or {})[sink.table].since)
    return PaneSpan(panes.windows_of(oldest)[0].start, panes.last_window_of(max(newest, oldest)).start)
