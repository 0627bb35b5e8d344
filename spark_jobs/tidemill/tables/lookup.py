"""Finds the range that an offset lies in, among many ranges and for whole columns at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.log.offsets import OffsetRange

Numbers = npt.NDArray[np.int64]


class Lookup:
    """Ranges of one topic that do not overlap; each has its position in the input as number.

    It searches by bisection: for each record it makes a few comparisons, not one for each range.
    """

    def __init__(self, ranges: Iterable[OffsetRange]) -> None:
        items = [(r.topic_partition.partition, r.from_offset, r.until_offset) for r in ranges]
        partitions, starts, ends = np.array(items, dtype=np.int64).reshape(-1, 3).T
        order = np.lexsort((starts, partitions))
        self._order = order[starts[order] < ends[order]]
        self._partitions, self._starts, self._ends = (each[self._order] for each in (partitions, starts, ends))

    def find(self, partitions: pa.Array, offsets: pa.Array) -> Numbers:
        """For each offset, the number of its range; -1 where it lies in none."""
        part, offset = _numbers(partitions), _numbers(offsets)
        found = np.full(len(part), -1, dtype=np.int64)
        for partition in _different(part):
            low, high = np.searchsorted(self._partitions, [partition, partition + 1])
            rows = np.flatnonzero(part == partition)
            if low < high:
                at = low + np.searchsorted(self._starts[low:high], offset[rows], side="right") - 1
                inside = (at >= low) & (offset[rows] < self._ends[np.maximum(at, low)])
                found[rows[inside]] = self._order[at[inside]]
        return found


def _different(numbers: Numbers) -> Numbers:
    # Most columns have one value: no sorting is needed then.
    return numbers[:1] if len(numbers) and numbers.min() == numbers.max() else np.unique(numbers)


def _numbers(column: pa.Array | pa.ChunkedArray) -> Numbers:
    numbers: Numbers = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return numbers.astype(np.int64, copy=False)
