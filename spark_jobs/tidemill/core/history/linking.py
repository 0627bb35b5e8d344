"""Which batches must be read again together, because they share offsets."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.history.coverage import Cover
from tidemill.core.plan.amendments import Ranges


def with_all_of(wanted: Ranges, covers: Sequence[Cover]) -> tuple[Cover, ...]:
    """The batches that read some of these offsets, the batches that share offsets with those, and so on; by id."""
    groups = _Groups()
    spans = sorted(
        (topic, r.topic_partition.partition, r.from_offset, r.until_offset, number)
        for number, ranges in enumerate([wanted, *(c.ranges for c in covers)])
        for topic, items in ranges.items()
        for r in items
        if r
    )
    place, owner, end = None, 0, 0
    for topic, partition, low, high, number in spans:
        if place == (topic, partition) and low < end:
            groups.join(owner, number)
            end = max(end, high)
        else:
            place, end = (topic, partition), high
        owner = number
    mine = groups.of(0)
    chosen = [c for number, c in enumerate(covers, start=1) if groups.of(number) == mine]
    return tuple(sorted(chosen, key=lambda c: c.batch_id))


class _Groups:
    """Disjoint sets of numbers (union-find): each number leads to the smallest number of its group."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def of(self, number: int) -> int:
        """The number that stands for the group of `number`."""
        path = [number]
        while (further := self._next.get(path[-1])) is not None:
            path.append(further)
        self._next.update(dict.fromkeys(path[:-1], path[-1]))
        return path[-1]

    def join(self, one: int, other: int) -> None:
        """Join the groups of the two numbers."""
        low, high = sorted((self.of(one), self.of(other)))
        if low != high:
            self._next[high] = low
