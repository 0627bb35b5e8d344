"""Which windows missed records that came too late for them, but not for later ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.time.panes import Panes

MOST = 100
"""Of a table of which more windows than this refused one record in a batch, nothing is told: a commit stays small."""


@dataclass(frozen=True, slots=True, order=True)
class Missed:
    """Each window that starts from `first` to `last`, both included, in microseconds, missed so many `records`."""

    first: int
    last: int
    records: int


def missed_windows(panes: Panes, closed: int, refusals: Mapping[int, int]) -> tuple[Missed, ...]:
    """The windows that missed records, oldest first, with how many; empty if more than `MOST` windows refused one.

    Windows that end at `closed` or earlier refuse records. `refusals` says how many records were refused by one window,
    by two, and so on, and taken by a later one. The windows of a record follow one another, so those that refused it
    are the newest closed ones.
    """
    if not refusals or max(refusals) > MOST:
        return ()
    newest, found, records = panes.number_of(panes.last_ending_by(closed).start), list[Missed](), 0
    numbers = sorted(refusals, reverse=True)
    for number, fewer in zip(numbers, (*numbers[1:], 0), strict=True):
        records += refusals[number]
        first, last = panes.window(newest - number + 1), panes.window(newest - fewer)
        found.append(Missed(first.start, last.start, records))
    return tuple(found)
