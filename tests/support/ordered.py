"""Stories for ordered windows: batches of records of one key, folded one after the other, and what they give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidemill.core.ordered.firing import Pieces, Reason, State, Wake
from tidemill.core.ordered.machine import Machine, machine_of
from tidemill.core.ordered.records import Moment, Records
from tidemill.core.time.panes import Window
from tidemill.core.time.timing import Timing

START = Moment()


class Record(NamedTuple):
    time: int = 0
    value: float | int | None = None
    marker: bool = False
    place: tuple[str, int, int] | None = None


class Batch(NamedTuple):
    """Records, and the moment after them; the moment before them is that after the last batch."""

    records: Sequence[Record]
    after: Moment


@dataclass(frozen=True)
class Result:
    """A firing with numbers of records, from 0 in order of arrival, in place of pieces."""

    window: Window | None
    timing: Timing
    index: int
    nonspeculative: int
    is_last: bool
    records: tuple[int, ...]
    position: int | None
    retracts: tuple[tuple[Window, tuple[int, ...]], ...] = ()
    replaces: tuple[Window, ...] = ()


@dataclass
class Story:
    """What a key gives over several batches. State is JSON between two batches."""

    declared: Any
    before: Moment = START
    results: list[Result] = field(default_factory=list)
    dropped: list[tuple[int, Reason, Window | None]] = field(default_factory=list)
    content: dict[int, list[int]] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    state: State | None = None
    wake: Wake = field(default_factory=Wake)
    fixed: set[int] = field(default_factory=set)
    next: int = 0

    def __post_init__(self) -> None:
        self.machine: Machine = machine_of(self.declared)

    def batch(self, records: Iterable[Record], after: Moment | None = None) -> list[Result]:
        """Fold one batch; gives what it fired."""
        records, first, known = list(records), len(self.records), len(self.results)
        places = [r.place for r in records if r.place is not None]
        columns = Records([r.time for r in records], [r.value for r in records], [r.marker for r in records], places)
        text = json.dumps(self.state)
        folded = self.machine.fold(self.state, columns, self.before, after or self.before, self.next)
        assert json.dumps(self.state) == text, "a fold changes no state that it is given"
        assert len(folded.positions) == len(folded.pieces)
        for position, piece in zip(folded.positions, folded.pieces, strict=True):
            assert not records[position].marker
            assert piece not in self.fixed, "nothing joins a piece that was fired"
            self.content.setdefault(piece, []).append(first + position)
            self.next = max(self.next, piece + 1)
        self.records += records
        for each in folded.firings:
            self.fixed.update(each.pieces)
            self.results.append(
                Result(
                    each.window,
                    each.timing,
                    each.index,
                    each.nonspeculative_index,
                    each.is_last,
                    self.of(each.pieces),
                    None if each.position is None else first + each.position,
                    tuple((window, self.of(pieces)) for window, pieces in each.retracts),
                    each.replaces,
                )
            )
        self.dropped += [(first + each.position, each.reason, each.window) for each in folded.dropped]
        self.state = json.loads(json.dumps(folded.state))
        assert self.state == folded.state
        self.wake, self.before = folded.wake, after or self.before
        return self.results[known:]

    def of(self, pieces: Pieces) -> tuple[int, ...]:
        """The records of these pieces."""
        return tuple(sorted(record for piece in pieces for record in self.content[piece]))


def told(declared: Any, batches: Iterable[Batch], before: Moment = START) -> Story:
    """The story of these batches."""
    story = Story(declared, before)
    for batch in batches:
        story.batch(batch.records, batch.after)
    return story


def cut(batches: Iterable[Batch], cuts: Sequence[int], before: Moment = START) -> list[Batch]:
    """The same records in smaller batches; the moments move where they did before. `cuts` are sizes, in turn."""
    pieces, turn = [], 0
    for batch in batches:
        left = list(batch.records)
        while cuts and len(left) > (size := cuts[turn % len(cuts)]):
            pieces.append(Batch(left[:size], before))
            left, turn = left[size:], turn + 1
        pieces.append(Batch(left, batch.after))
        before = batch.after
    return pieces


def of_values(*values: float) -> list[Record]:
    """Records with these values, which are their times, too."""
    return [Record(int(value), value) for value in values]


def of_times(*times: int) -> list[Record]:
    """Records with these event times."""
    return [Record(time) for time in times]


def shown(story: Story) -> list[list[float]]:
    """The values of the records of each firing."""
    return [[story.records[i].value for i in each.records] for each in story.results]  # type: ignore[misc]


def times_of(story: Story, results: Iterable[Result] | None = None) -> list[list[int]]:
    """The event times of the records of each firing."""
    found = story.results if results is None else results
    return [[story.records[i].time for i in each.records] for each in found]
