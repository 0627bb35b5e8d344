"""The planned offsets of an input, divided into blocks: one bit per block tells if it has rejected or late records.

The pass over a batch gives counts and aggregates, not the few records that are rejected or late. It leaves a bitmap of
the blocks that hold such records, 4 kB for a batch of any size, and a second pass decodes only those blocks: with 1 %
rejected of 100,000 records, about 4 % of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.log.offsets import OffsetRange
from tidemill.tables.lookup import Lookup

COUNT = 8 * 4096
"""The number of bits in the bitmap of Spark's `bitmap_construct_agg`."""


class Blocks:
    """At most `COUNT` blocks of equal length, which tile the ranges one after the other."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        lengths = np.array([len(r) for r in ranges], dtype=np.int64)
        before = np.cumsum(lengths) - lengths
        self._lookup = Lookup(ranges)
        self._length = max(-(-int(lengths.sum()) // COUNT), 1)
        # Added to an offset, this gives its place in all ranges together.
        self._shift = before - np.array([r.from_offset for r in ranges], dtype=np.int64)

    def of(self, partitions: pa.Array, offsets: pa.Array) -> npt.NDArray[np.int32]:
        """The block of each record, from 0; for an offset outside the ranges, 0."""
        at = self._lookup.find(partitions, offsets)
        found = np.zeros(len(at), dtype=np.int32)
        inside = at >= 0
        found[inside] = (self._shift[at[inside]] + offsets.to_numpy()[inside]) // self._length
        return found


def marked(bitmap: bytes, blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """For each block, whether its bit is set; as in Spark, the lowest bit of a byte comes first."""
    bits: npt.NDArray[np.uint8] = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return bits[blocks].astype(bool)
