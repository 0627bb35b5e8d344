"""How much one batch reads, and whose turn it is when that is less than there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tidemill.core.log.offsets import OffsetRange


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """At most so many records in one batch, over all inputs, and of one topic-partition; None for no limit.

    A function of the backlog alone, and fair: of `n` partitions that always have more to read, each is read at least
    once in `n` batches in a row under one limit.
    """

    records: int | None = None
    of_partition: int | None = None

    def __post_init__(self) -> None:
        for limit in (self.records, self.of_partition):
            if limit is not None and limit < 1:
                raise ValueError(f"a read limit is at least 1, found {limit}")

    def apply(self, backlog: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """The first offsets of each range, `records` in all: shares in proportion to what each holds.

        What rounding leaves goes one by one to the smallest shares, among equal ones to those whose turn it is.
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
    """The range whose turn is first in this batch.

    A batch that cannot read everything reads exactly `limit` offsets, so the offsets where the ranges start count such
    batches; neither clocks nor numbers of batches do, which may repeat or skip. From batch to batch the turn goes on by
    a step without a common divisor with the number of ranges, so that it comes to each of them; the step is as long as
    a batch can serve, so that it comes soon.
    """
    count = len(backlog)
    step = next(s for s in range(min(limit, count), 0, -1) if gcd(s, count) == 1)
    return sum(r.from_offset for r in backlog) // limit * step % count
