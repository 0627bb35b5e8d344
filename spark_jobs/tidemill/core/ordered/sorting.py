"""Lets the records of a key into a buffer in order of event time, once the watermark has passed them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from tidemill.core.ordered.alive import pieces_of
from tidemill.core.ordered.firing import Dropped, Folded, Pieces, Reason, State, Wake
from tidemill.core.ordered.idle_keys import Fold
from tidemill.core.ordered.kept import check_state, ids_of, kept, runs_of
from tidemill.core.ordered.records import Moment, Number, Records, is_number

_MACHINE = "sorted"

Contents: TypeAlias = dict[int, list[int]]
"""For each piece of `inner`, the pieces of its records, in the order in which `inner` took them."""


class _Waiting(NamedTuple):
    """A record that waits: when and where it is in the log, its piece, and what the buffer looks at."""

    time: int
    topic: str
    partition: int
    offset: int
    piece: int
    value: Number | None
    marker: bool


class _Key:
    """What a key keeps: the records that wait, the state of its buffer, and the pieces of what is in it."""

    __slots__ = ("inner", "next", "pieces", "waiting")

    def __init__(self, state: State | None, first_piece: int) -> None:
        self.next, self.waiting = first_piece, list[_Waiting]()
        self.inner: State | None = None
        self.pieces: Contents = {}
        if state is not None:
            check_state(state, _MACHINE)
            self.next, self.inner = state["next"], state["inner"]
            self.waiting = [_Waiting(*each) for each in state["waiting"]]
            self.pieces = _contents(self.inner, ids_of(state["pieces"]))

    def kept(self) -> State | None:
        """The state, if a record waits or the buffer keeps something."""
        if not self.waiting and self.inner is None:
            return None
        pieces = runs_of(piece for each in self.pieces.values() for piece in each)
        waiting = [list(each) for each in self.waiting]
        return kept(_MACHINE, next=self.next, waiting=waiting, inner=self.inner, pieces=pieces)


class SortingFold:
    """Keeps records until the watermark has passed them, and then folds them as `inner` does, in order of event time.

    Each record is a piece of its own, because nobody knows what it will be beside. `inner` has ids of its own for its
    pieces; firings name those of the records. Where the buffer `compares` values, a record without one is dropped when
    it comes.
    """

    def __init__(self, inner: Fold, *, compares: bool) -> None:
        self._inner, self._compares = inner, compares

    def fold(  # noqa: D102
        self, state: State | None, records: Records, before: Moment, after: Moment, first_piece: int = 0
    ) -> Folded:
        folded, key = Folded(), _Key(state, first_piece)
        self._take(key, records, before, folded)
        wake = self._let_in(key, before, after, folded)
        first = min((each.time + 1 for each in key.waiting), default=None)
        soonest = [at for at in (first, wake.watermark) if at is not None]
        folded.state, folded.wake = key.kept(), Wake(min(soonest, default=None), wake.clock)
        return folded

    def _take(self, key: _Key, records: Records, before: Moment, folded: Folded) -> None:
        """Keep what is not late; only markers belong to no piece."""
        for position, time in enumerate(records.times):
            value = records.values[position] if records.values else None
            marker = bool(records.markers) and records.markers[position]
            if time < before.watermark:
                folded.dropped.append(Dropped(position, Reason.LATE))
                continue
            if self._compares and not marker and not is_number(value):
                folded.dropped.append(Dropped(position, Reason.NO_VALUE))
                continue
            place = records.places[position] if records.places else ("", 0, key.next)
            key.waiting.append(_Waiting(time, *place, key.next, value, marker))
            if not marker:
                folded.positions.append(position)
                folded.pieces.append(key.next)
            key.next += 1

    def _let_in(self, key: _Key, before: Moment, after: Moment, folded: Folded) -> Wake:
        """Fold the records that the watermark has passed, and let time pass in the buffer."""
        due = sorted(each for each in key.waiting if each.time < after.watermark)
        if not due and key.inner is None:
            return Wake()
        key.waiting = [each for each in key.waiting if each.time >= after.watermark]
        _, _, _, _, pieces, values, markers = zip(*due, strict=True) if due else ((),) * 7
        given = Records([each.time for each in due], values, markers)
        inner = self._inner.fold(key.inner, given, before, after)
        for position, piece in zip(inner.positions, inner.pieces, strict=True):
            key.pieces.setdefault(piece, []).append(pieces[position])
        for firing in inner.firings:
            firing.pieces, firing.position = _together(key.pieces[piece] for piece in firing.pieces), None
            folded.firings.append(firing)
        key.inner = inner.state
        left = [] if inner.state is None else ids_of(pieces_of(inner.state))
        key.pieces = {piece: key.pieces[piece] for piece in left}
        return inner.wake


def _contents(inner: State | None, pieces: list[int]) -> Contents:
    """What each piece of a buffer holds. A tumbling buffer is one piece, and one of a sliding buffer is a record."""
    ids = [] if inner is None else ids_of(pieces_of(inner))
    if inner is not None and inner["machine"] == "tumbling":
        return dict.fromkeys(ids, pieces)
    return {each: [piece] for each, piece in zip(ids, pieces, strict=True)}


def _together(parts: Iterable[list[int]]) -> Pieces:
    """The pieces of a firing in the order of their ids; a `range` if they follow one another."""
    pieces = sorted(piece for part in parts for piece in part)
    whole = bool(pieces) and pieces[-1] - pieces[0] + 1 == len(pieces)
    return range(pieces[0], pieces[-1] + 1) if whole else tuple(pieces)
