"""The fold of windows that records define: a piece is what one batch brought of one time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tidemill.core.ordered.firing import Dropped, Firing, Folded, Pieces, Reason, State, Wake
from tidemill.core.ordered.kept import check_state, kept
from tidemill.core.ordered.record_windows import RecordWindows
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import END

_MACHINE = "record windows"


class _Held:
    """The pieces of one key with their times, in the order of these, and the next id."""

    __slots__ = ("next", "pieces", "times")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.next, self.times, self.pieces = first_piece, list[int](), list[int]()
        if state is not None:
            check_state(state, _MACHINE)
            self.next, self.times, self.pieces = state["next"], list(state["times"]), list(state["pieces"])

    def kept(self) -> State | None:
        """The state, if there are pieces."""
        return kept(_MACHINE, next=self.next, times=self.times, pieces=self.pieces) if self.times else None

    def add(self, pieces: dict[int, int]) -> None:
        """Put new pieces, by their times, between those that are there."""
        both = sorted([*zip(self.times, self.pieces, strict=True), *pieces.items()])
        self.times, self.pieces = [time for time, _ in both], [piece for _, piece in both]

    def breaks(self) -> list[int]:
        """The places of pieces whose ids do not follow those before them."""
        return [place for place, (one, next_) in enumerate(pairwise(self.pieces), 1) if next_ != one + 1]

    def inside(self, window: Window, breaks: Sequence[int]) -> Pieces:
        """The pieces of a window: a range where there is no break."""
        first, until = bisect_left(self.times, window.start), bisect_left(self.times, window.end)
        if first < until and bisect_right(breaks, first) == bisect_left(breaks, until):
            return range(self.pieces[first], self.pieces[first] + until - first)
        return tuple(self.pieces[first:until])

    def forget_before(self, time: int) -> None:
        """Keep what has this time or a later one."""
        first = bisect_left(self.times, time)
        del self.times[:first], self.pieces[:first]


class RecordWindowsFold:
    """Folds records into the windows that they define."""

    def __init__(self, declared: RecordWindows) -> None:
        self._size = declared.micros

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        folded, held = Folded(), _Held(state, first_piece)
        self._take(held, records, before.watermark, folded)
        breaks = held.breaks()
        for window in self._windows(held.times, before.watermark, after.watermark):
            if pieces := held.inside(window, breaks):
                folded.firings.append(Firing(window, Timing.ON_TIME, 0, 0, True, pieces, None))
        held.forget_before(END if after.watermark >= END else after.watermark - self._size)
        folded.state, folded.wake = held.kept(), self._wake(held.times, after.watermark)
        return folded

    def _take(self, held: _Held, records: Records, watermark: int, folded: Folded) -> None:
        """Each record that is not late is of the piece of its time.

        Pieces are numbered in the order of their times, so that those of a window are few runs of numbers.
        """
        times = records.times
        for position in records.data():
            time = times[position]
            if time + self._size <= watermark or watermark >= END:
                folded.dropped.append(Dropped(position, Reason.LATE, self._ending(time)))
            else:
                folded.positions.append(position)
        taken = [times[position] for position in folded.positions]
        fresh = {time: held.next + number for number, time in enumerate(sorted(set(taken)))}
        folded.pieces.extend(fresh[time] for time in taken)
        if fresh:
            held.next += len(fresh)
            held.add(fresh)

    def _windows(self, times: Iterable[int], before: int, after: int) -> list[Window]:
        """The windows of these times that fire as the watermark moves, in the order of their ends."""
        until = after if after < END else None
        return [
            Window(end - self._size, end)
            for end in sorted({end for time in times for end in self._ends(time)})
            if end > before and (until is None or end <= until)
        ]

    def _ends(self, time: int) -> Iterator[int]:
        """Where the windows of a record at `time` end: the one with it, and the one after it."""
        yield time + 1
        yield time + 1 + self._size

    def _ending(self, time: int) -> Window:
        return Window(time + 1 - self._size, time + 1)

    def _wake(self, times: Iterable[int], watermark: int) -> Wake:
        """When the next window may fire; one that starts after a record may turn out to be empty."""
        return Wake(min((end for time in times for end in self._ends(time) if end > watermark), default=None))
