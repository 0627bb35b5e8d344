"""Which windows a batch publishes, and which panes it must read for them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidemill.core.flow import WindowedSink
from tidemill.core.operators import Trigger
from tidemill.core.times import micros
from tidemill.core.watermarks import BEGINNING, END


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The windows that fire when the watermark moves from `before` to `after` and a batch touches some panes.

    On close: every window with `before < end <= after` fires, on time; and each (window, key) that the batch touched
    with `end <= before` fires again, late. On update: each (window, key) that the batch touched fires. A window with
    `end + allowed_lateness <= before` refuses records and never fires again.
    """

    trigger: Trigger
    before: int
    after: int
    allowed_lateness: int

    @staticmethod
    def of(sink: WindowedSink, before: int, after: int) -> Firing:
        """The firing of a sink between two watermarks."""
        return Firing(trigger=sink.trigger, before=before, after=after, allowed_lateness=micros(sink.allowed_lateness))

    @property
    def refused_until(self) -> int:
        """Windows that end here or earlier are closed for good."""
        return max(self.before - self.allowed_lateness, BEGINNING)

    def closes(self, end: int) -> bool:
        """Whether a window with this end fires on time."""
        return self.trigger is Trigger.ON_CLOSE and self.before < end <= self.after

    def fires_when_touched(self, end: int) -> bool:
        """Whether a (window, key) with this end fires because the batch touched it."""
        open_again = end > self.refused_until
        return open_again and (self.trigger is Trigger.ON_UPDATE or end <= self.before)

    def pane_ranges(
        self, sink: WindowedSink, touched_panes: Iterable[int]
    ) -> tuple[tuple[int | None, int | None], ...]:
        """The starts of panes to read, as half-open ranges in microseconds; None does not bound; none when empty."""
        panes = sink.window.panes
        ranges: list[tuple[int, int]] = []
        for pane in touched_panes:
            ends = [w.end for w in panes.windows_of(pane) if self.fires_when_touched(w.end)]
            if ends:
                ranges.append((min(ends) - panes.size, max(ends)))
        if self.trigger is Trigger.ON_CLOSE and self.after > self.before:
            ranges.append((max(self.before - panes.size + 1, BEGINNING), self.after))
        return tuple(
            (None if low == BEGINNING else low, None if high == END else high) for low, high in _united(ranges)
        )

    def candidate_sql(self, start: str, size: int) -> str:
        """An SQL predicate over a window's start that holds for every window that may fire."""
        ends = f"({start} + {size}L)"
        last = "true" if self._highest == END else f"{ends} <= {self._highest}L"
        return f"{ends} > {_literal(self._lowest)} AND {last}"

    def fires_sql(self, start: str, touched: str, size: int) -> str:
        """An SQL predicate for the (window, key) rows that fire."""
        ends = f"({start} + {size}L)"
        again = f"{touched} AND {ends} > {_literal(self.refused_until)}"
        if self.trigger is Trigger.ON_UPDATE:
            return again
        return f"({ends} > {_literal(self.before)}) OR ({again} AND {ends} <= {_literal(self.before)})"

    @property
    def _lowest(self) -> int:
        return self.refused_until

    @property
    def _highest(self) -> int:
        return END if self.trigger is Trigger.ON_UPDATE else self.after


def _united(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if united and low <= united[-1][1]:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        elif low < high:
            united.append((low, high))
    return united


def _literal(value: int) -> str:
    # -2**63 cannot be written as a literal: the minus is an operator there.
    return "(-9223372036854775807L - 1L)" if value == BEGINNING else f"{value}L"
