"""How much one batch reads, and which partitions come first when there is more to read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import gcd

from tidemill.core.log.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """The most records of one batch, over all inputs (`records`) and of one topic-partition; None is no limit.

    The result depends on the backlog alone and is fair: if `n` partitions always have more to read, each is read at
    least once in any `n` consecutive batches under one limit.
    """

    records: int | None = None
    of_partition: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.records, self.of_partition):
            if limit is not None and limit < 1:
                raise ValueError(f"a read limit is at least 1, found {limit}")

    def is_reached(self, taken: Collection[OffsetRange]) -> bool:
        """Whether a batch of these ranges may have left something over because of the limit."""
        whole = self.records is not None and sum(map(len, taken)) >= self.records
        return whole or (self.of_partition is not None and any(len(r) >= self.of_partition for r in taken))

    def apply(self, backlog: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """The first offsets of each range, `records` in all: each range gets a share in proportion to its length.

        Offsets that rounding leaves over go one by one to the smallest shares; among equal shares, by turn.
        """
        if self.of_partition is not None:
            backlog = [r.take(self.of_partition) for r in backlog]
        total = sum(len(r) for r in backlog)
        if self.records is None or total <= self.records:
            return tuple(backlog)
        shares = [len(r) * self.records // total for r in backlog]
        spare = self.records - sum(shares)
        first = _first(backlog, self.records)
        for index in sorted(range(len(shares)), key=lambda i: (shares[i], (i - first) % len(shares))):
            if spare and shares[index] < len(backlog[index]):
                shares[index] += 1
                spare -= 1
        return tuple(item.take(share) for item, share in zip(backlog, shares, strict=True))


def _first(backlog: Sequence[OffsetRange], limit: int) -> int:
    """The index of the range whose turn is first in this batch.

    A batch that cannot read everything reads exactly `limit` offsets, so the offsets where the ranges start count such
    batches. Clocks and batch ids do not: they may repeat or skip. From batch to batch, the turn moves by a step that
    has no common divisor with the number of ranges, so it reaches each of them. The step is the longest that one batch
    can serve, so that no range waits long.
    """
    count = len(backlog)
    step = next(s for s in range(min(limit, count), 0, -1) if gcd(s, count) == 1)
    return sum(r.from_offset for r in backlog) // limit * step % count
