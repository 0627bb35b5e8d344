"""How far a backfill of tables of firings must reach: what old records hold decides every firing after them.

It begins with the first batch that it touches and goes on to the last one. Its slice replaces those of all these
batches, so it grows until no slice holds records of batches on both sides of its begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemill.core.history.coverage import Cover, united
from tidemill.core.history.linking import with_all_of
from tidemill.core.plan.slices import BatchRange, SliceSet, in_both

Origins = Callable[[Cover], tuple[int, int]]
"""The first and the last batch that had first read what a slice holds."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """The batch from which on everything is folded again, and the batches whose slices hold it now."""

    since: int
    covers: tuple[Cover, ...]


def replayed(touched: Sequence[Cover], covers: Sequence[Cover], origins: Origins) -> Replayed:
    """All of `covers`, which are visible, that hold records of the first batch of `touched` or of a later one.

    Batches that share offsets stay together: what one of them put aside, another may have let in.
    """
    ends = {cover.batch_id: origins(cover) for cover in (*covers, *touched)}
    since = min(ends[cover.batch_id][0] for cover in touched)
    while True:
        later = [cover for cover in covers if ends[cover.batch_id][1] >= since]
        found = with_all_of(united(cover.ranges for cover in (*touched, *later)), covers)
        first = min(ends[cover.batch_id][0] for cover in found)
        if first >= since:
            return Replayed(since, found)
        since = first


def is_readable(before: SliceSet, now: SliceSet, horizon: int | None) -> bool:
    """Whether state is still there as it was when the slices `before` were visible.

    `horizon` is the first batch whose state maintenance has left complete, None if it never removed any. What is
    visible `now` is there in any case.
    """
    if horizon is None or before.through >= horizon:
        return True
    return not in_both(_visible(before), now.hidden)


def _visible(slices: SliceSet) -> list[BatchRange]:
    edges = [1, *(e for r in slices.hidden for e in (r.from_batch, r.until_batch)), slices.through + 1]
    return [BatchRange(low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low < high]
