"""The fold of a tumbling buffer that time flushes: a piece is a window of time."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.core.ordered.firing import Dropped, Firing, Folded, Reason, State, Wake
from tidemill.core.ordered.kept import check_state, kept
from tidemill.core.ordered.policies import MOST_BY_TIME, TimePolicy
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

_MACHINE = "tumbling time"


class _Open:
    """The open windows of one key: the piece of each start, the next id, and the first start that did not fire."""

    __slots__ = ("next", "pieces", "since")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.next, self.pieces = first_piece, dict[int, int]()
        self.since: int | None = None
        if state is not None:
            check_state(state, _MACHINE)
            self.next, self.pieces, self.since = state["next"], dict(state["pieces"]), state["since"]

    def kept(self) -> State | None:
        """The state, if a window is open, or an empty one will fire."""
        if not self.pieces and self.since is None:
            return None
        return kept(_MACHINE, next=self.next, pieces=sorted(map(list, self.pieces.items())), since=self.since)


class TumblingTimeFold:
    """Folds records into windows of time that start at whole multiples of the length since 1970."""

    def __init__(self, policy: TimePolicy, *, emit_empty: bool) -> None:
        self._length, self._uses_clock, self._emit_empty = policy.micros, policy.uses_clock, emit_empty

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        folded, key = Folded(), _Open(state, first_piece)
        self._take(key, records, before, folded)
        self._flush(key, after.clock if self._uses_clock else after.watermark, folded)
        folded.state = key.kept()
        due = self._next_end(key)
        folded.wake = Wake(clock=due) if self._uses_clock else Wake(watermark=due)
        return folded

    def _take(self, key: _Open, records: Records, before: Moment, folded: Folded) -> None:
        length, times = self._length, records.times
        for position in records.data():
            time = before.clock if self._uses_clock else times[position]
            start = time - time % length
            if not self._uses_clock and start + length <= before.watermark:
                folded.dropped.append(Dropped(position, Reason.LATE, Window(start, start + length)))
                continue
            piece = key.pieces.get(start)
            if piece is None:
                piece = key.pieces[start] = key.next
                key.next += 1
                if self._emit_empty:
                    key.since = start if key.since is None else min(start, key.since)
            folded.positions.append(position)
            folded.pieces.append(piece)

    def _flush(self, key: _Open, now: int, folded: Folded) -> None:
        """Fire all windows that end at `now` or before, in order. After the end of the log no empty ones follow."""
        length = self._length
        starts = {start for start in key.pieces if start + length <= now}
        if self._emit_empty and key.since is not None:
            last = max(key.pieces, default=key.since - length) if now >= END else now - length
            starts.update(self._empty(key.since, sorted(starts), last + 1))
            key.since = None if now >= END else max(key.since, now - now % length)
        for start in sorted(starts):
            piece = key.pieces.pop(start, None)
            pieces = () if piece is None else (piece,)
            window = Window(start, start + length)
            folded.firings.append(Firing(window, Timing.ON_TIME, 0, 0, True, pieces, None))

    def _empty(self, since: int, taken: list[int], until: int) -> Iterator[int]:
        """The starts of empty windows before, between and after those that are `taken`, but of no long gap."""
        for start in (*taken, until):
            gap = range(since, start, self._length)
            if len(gap) <= MOST_BY_TIME:
                yield from gap
            since = max(since, start + self._length)

    def _next_end(self, key: _Open) -> int | None:
        starts = [*key.pieces] if key.since is None else [key.since, *key.pieces]
        return min(starts) + self._length if starts else None
