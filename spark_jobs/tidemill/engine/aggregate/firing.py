"""Which windows a batch publishes, and which panes it must read for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.bind.sinks import WindowedSink
from tidemill.core.plan.backfill_job import Backfill
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Position
from tidemill.core.repair.state_retention import lacking
from tidemill.core.time.calendar import CalendarPanes
from tidemill.core.time.pane_tree import Span, unite
from tidemill.core.time.panes import EvenPanes, Panes
from tidemill.core.time.times import micros
from tidemill.core.time.trigger import Trigger
from tidemill.core.time.watermarks import BEGINNING, END

_CLOCK_CHANGE = 3 * 3_600_000_000
"""By how much a change of its rules may move midnight in a time zone, in microseconds."""

_FAR = 2**62
"""Beyond any event time, but a window's size added to it still fits 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The windows that fire when the watermark moves from `before` to `after` and a batch touches some panes.

    On close: every window with `before < end <= after` fires, on time; and each (window, key) that the batch touched
    with `end <= before` fires again, late. On update: each (window, key) that the batch touched fires. A window with
    `end + allowed_lateness <= before` refuses records and never fires again; with `allowed_lateness` None there is no
    such window. A window that ends at `forgotten` or earlier never fires either: its state was removed, or it lacks
    records from before the table existed.
    """

    trigger: Trigger
    before: int
    after: int
    allowed_lateness: int | None
    forgotten: int = BEGINNING

    @staticmethod
    def of(sink: WindowedSink, plan: BatchPlan, after: Position) -> Firing:
        """The firing of a sink in a batch that moves the pipeline to `after`."""
        lateness = micros(sink.allowed_lateness) if plan.live and sink.closes else None
        until, missing = plan.position.forgotten_until, lacking(sink, after)
        return Firing(
            trigger=sink.trigger,
            # Windows that lack records are treated as if they had ended before.
            before=max(plan.position.watermark_of(sink.table), missing),
            after=after.watermark_of(sink.table),
            allowed_lateness=lateness,
            forgotten=missing if until is None else max(until, missing),
        )

    @property
    def refused_until(self) -> int:
        """An event time: windows that end here or earlier are closed for good."""
        lateness = self.allowed_lateness
        return self.forgotten if lateness is None else max(self.before - lateness, self.forgotten)

    @property
    def again_until(self) -> int:
        """Windows that end at this time or earlier, and are not closed for good, fire if the batch touches them."""
        return self.trigger.touched_until(self.before)

    def pane_ranges(
        self, sink: WindowedSink, touched_panes: Iterable[int]
    ) -> tuple[tuple[int | None, int | None], ...]:
        """Half-open ranges of the starts of panes to read, in microseconds; None is no bound. May be empty."""
        return tuple(
            (None if low == BEGINNING else low, None if high == END else high)
            for low, high in self.spans(sink, touched_panes)
        )

    def spans(self, sink: WindowedSink, touched_panes: Iterable[int]) -> tuple[Span, ...]:
        """The ranges of event time that hold all windows that may fire, at most from BEGINNING to END."""
        panes = sink.window.panes
        ranges: list[Span] = []
        for pane in touched_panes:
            windows = [w for w in panes.windows_of(pane) if self.refused_until < w.end <= self.again_until]
            if windows:
                ranges.append((windows[0].start, windows[-1].end))
        if self.trigger.fires_on_close:
            ranges.append(self._on_time(panes))
        return unite(ranges)

    def _on_time(self, panes: Panes) -> Span:
        """The range that holds the windows that fire on time; empty when none ends between the two watermarks."""
        # State of calendar windows has the ends of then, when its zone may have had other rules.
        margin = _CLOCK_CHANGE if isinstance(panes, CalendarPanes) else 0
        low = BEGINNING if self.before == BEGINNING else panes.first_ending_after(self.before - margin).start
        high = END if self.after == END else panes.last_ending_by(self.after + margin).end
        return (low, high) if panes.holds_window(low, high) else (low, low)

    def most_windows(self, panes: Panes) -> int:
        """The most windows of one pane that may fire."""
        if not isinstance(panes, EvenPanes):
            return 1
        bounds = self.bounds
        on_time = max(bounds["_after"] - bounds["_before"], 0)
        again = max(self.again_until - self.refused_until, 0)
        return min(panes.overlap, -(-on_time // panes.slide) + -(-again // panes.slide))

    def starts(self, panes: EvenPanes) -> Span:
        """The first and the last event time at which windows that may fire can start; (1, 0) when none may fire."""
        on_time = (self.before, self.after) if self.trigger.fires_on_close and self.after > self.before else None
        ends = [e for e in (on_time, (self.refused_until, self.again_until)) if e is not None and e[0] < e[1]]
        if not ends:
            return 1, 0
        low, high = min(e[0] for e in ends), max(e[1] for e in ends)
        return max(low + 1 - panes.size, -_FAR), min(high - panes.size, _FAR)

    @property
    def bounds(self) -> dict[str, int]:
        """Which windows fire, by their `end`, as columns for `finished_windows`.

        On time: `_before < end <= _after`. Again, if the batch touched them: `_refused_until < end <= _again_until`.
        """
        on_close = self.trigger.fires_on_close
        return {
            "_before": self.before if on_close else END,
            "_after": self.after if on_close else END,
            "_refused_until": self.refused_until,
            "_again_until": self.again_until,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Refiring:
    """Every window that lies completely inside one of `ranges` fires completely: all keys, and no other window.

    `ranges` are half-open, in microseconds; only windows that end at `until` or earlier fire.
    """

    ranges: tuple[Span, ...]
    until: int

    @staticmethod
    def of(sink: WindowedSink, job: Backfill, position: Position) -> Refiring:
        """The windows that contain some panes of a job; with trigger ON_CLOSE, only closed ones.

        `position` is the one that the job's plan starts from. Forgotten windows fire only if the job reads all of their
        records.
        """
        panes, spans, watermark = sink.window.panes, job.panes.get(sink.table, ()), position.watermark_of(sink.table)
        until = position.forgotten_until
        kept = BEGINNING if until is None else panes.first_ending_after(until).start
        edges = [(panes.windows_of(s.first)[0].start, panes.windows_of(s.last)[-1].end) for s in spans]
        closed = sink.trigger.touched_until(watermark)
        # Parts may overlap, but no window lies inside two of them.
        parts = [(kept, END), *((s.first, panes.end_of(s.last)) for s in (job.whole or {}).get(sink.table, ()))]
        ranges = [(max(low, a), min(high, b, closed)) for low, high in unite(edges) for a, b in parts]
        return Refiring(ranges=tuple(each for each in ranges if panes.holds_window(*each)), until=closed)

    def bounds(self, sink: WindowedSink, panes: tuple[int, int]) -> dict[str, int]:
        """The columns of `Firing.bounds`, for the state in one of the ranges."""
        low, high = panes
        none = {"_before": END, "_after": END}
        before = BEGINNING if low == BEGINNING else sink.window.panes.last_window_of(low - 1).end
        return {**none, "_refused_until": before, "_again_until": high}

    def window_starts(self, sink: WindowedSink) -> tuple[tuple[int, int], ...]:
        """The starts of the windows that fire, as half-open ranges in microseconds; their windows have a start."""
        return tuple((low, sink.window.panes.last_ending_by(high).start + 1) for low, high in self.ranges)
