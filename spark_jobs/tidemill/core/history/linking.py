"""Which batches must be read again together, because they share offsets."""

from __future__ import annotations

from collections.abc import Sequence

from tidemill.core.history.coverage import Cover
from tidemill.core.plan.amendments import Ranges


def with_all_of(wanted: Ranges, covers: Sequence[Cover]) -> tuple[Cover, ...]:
    """The batches that read some of these offsets, those that read others of theirs, and so on."""
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
    """Numbers that belong together: each points to another of its group, and at last to the one that stands for it."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}

    def of(self, number: int) -> int:
        """The one that stands for the group."""
        path = [number]
        while (further := self._next.get(path[-1])) is not None:
            path.append(further)
        self._next.update(dict.fromkeys(path[:-1], path[-1]))
        return path[-1]

    def join(self, one: int, other: int) -> None:
        """Make their groups one."""
        low, high = sorted((self.of(one), self.of(other)))
        if low != high:
            self._next[high] = low
