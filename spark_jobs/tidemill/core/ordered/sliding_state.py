"""What a sliding buffer keeps of one key."""

from __future__ import annotations

from collections import deque

from tidemill.core.ordered.firing import Firing, Folded, Pieces, State
from tidemill.core.ordered.kept import check_state, ids_of, kept, runs_of
from tidemill.core.ordered.records import Number
from tidemill.core.time.timing import Timing
from tidemill.core.time.watermarks import BEGINNING

_MACHINE = "sliding"


class SlidingState:
    """The buffer of one key, oldest record first.

    `ids` are the pieces of its records, and `marks` what eviction compares: their values, or their times; with a count
    policy there are none. `inserted` counts since the count trigger fired, `compared` is the value with which the
    delta trigger compares, `due` the next moment of a time trigger, `now` the newest event time or clock.
    """

    __slots__ = ("compared", "due", "ids", "index", "inserted", "marks", "next", "now", "unordered")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.next, self.index, self.inserted, self.now = first_piece, 0, 0, BEGINNING
        self.ids, self.marks = deque[int](), deque[Number]()
        self.compared: Number | None = None
        self.due: int | None = None
        if state is not None:
            check_state(state, _MACHINE)
            self.next, self.index, self.inserted, self.now = (state[n] for n in ("next", "index", "inserted", "now"))
            self.ids, self.marks = deque(ids_of(state["ids"])), deque(state["marks"])
            self.compared, self.due = state["compared"], state["due"]
        # Marks may be out of order: then the oldest record need not be the first to go.
        self.unordered = any(later < mark for mark, later in zip(self.marks, list(self.marks)[1:], strict=False))

    def kept(self) -> State | None:
        """The state, unless the next record would find the same without it."""
        if self._is_new:
            return None
        return kept(
            _MACHINE,
            next=self.next,
            index=self.index,
            inserted=self.inserted,
            now=self.now,
            ids=runs_of(self.ids),
            marks=list(self.marks),
            compared=self.compared,
            due=self.due,
        )

    @property
    def _is_new(self) -> bool:
        return not self.ids and not self.inserted and self.compared is None

    def begin_anew(self) -> None:
        """Count firings from 0 again if nothing would be kept, as after a batch that has ended here."""
        if self._is_new:
            self.index = 0

    @property
    def newest(self) -> Number:
        """The greatest mark; there must be one."""
        return max(self.marks) if self.unordered else self.marks[-1]

    def insert(self, mark: Number | None) -> int:
        """Append a record; `mark` is None if eviction compares nothing. Gives its piece."""
        piece = self.next
        self.next += 1
        self.ids.append(piece)
        if mark is not None:
            self.unordered = self.unordered or bool(self.marks and mark < self.marks[-1])
            self.marks.append(mark)
        return piece

    def drop_oldest(self) -> None:
        """Evict the record that was inserted first."""
        self.ids.popleft()
        if self.marks:
            self.marks.popleft()

    def drop_older(self, edge: int) -> None:
        """Evict all records with a time before `edge`."""
        ids, marks = self.ids, self.marks
        while marks and marks[0] < edge:
            ids.popleft()
            marks.popleft()
        if self.unordered:
            left = [(each, mark) for each, mark in zip(ids, marks, strict=True) if mark >= edge]
            if len(left) < len(ids):
                self.ids, self.marks = deque(each for each, _ in left), deque(mark for _, mark in left)
        self.unordered = self.unordered and bool(self.marks)

    def compare(self, value: Number | None, threshold: Number, position: int, folded: Folded) -> None:
        """A delta trigger: fire what is there if `value` is more than `threshold` above what triggered last."""
        if value is None:
            return
        if self.compared is None:
            self.compared = value
        elif value - self.compared > threshold:
            self.compared = value
            if self.ids:
                self.fire(folded, position)

    def fire(self, folded: Folded, position: int | None) -> None:
        """Fire all that is in the buffer."""
        index = self.index
        folded.firings.append(Firing(None, Timing.ON_TIME, index, index, False, self._pieces(), position))
        self.index += 1

    def _pieces(self) -> Pieces:
        ids = self.ids
        if not ids:
            return ()
        whole = ids[-1] - ids[0] + 1 == len(ids)
        return range(ids[0], ids[-1] + 1) if whole else tuple(ids)
