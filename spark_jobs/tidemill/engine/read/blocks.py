"""The planned offsets of an input, cut into blocks: a bit for each says where rejected and late records are.

The pass over a batch gives counts and aggregates, not the few records that end elsewhere. It leaves a bitmap of the
blocks that hold some, 4 kB however large the batch, and a second pass decodes only those: of 100,000 records with 1 %
rejected about 4 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.log.offsets import OffsetRange
from tidemill.tables.lookup import Lookup

COUNT = 8 * 4096
"""As many bits as the bitmap of Spark's `bitmap_construct_agg` has."""


class Blocks:
    """At most `COUNT` blocks of equal length, which tile the ranges one after the other."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        lengths = np.array([len(r) for r in ranges], dtype=np.int64)
        before = np.cumsum(lengths) - lengths
        self._lookup = Lookup(ranges)
        self._length = max(-(-int(lengths.sum()) // COUNT), 1)
        # What is added to an offset to have its place among all of the ranges.
        self._shift = before - np.array([r.from_offset for r in ranges], dtype=np.int64)

    def of(self, partitions: pa.Array, offsets: pa.Array) -> npt.NDArray[np.int32]:
        """The block of each record, from 0; of an offset outside the ranges it is 0."""
        at = self._lookup.find(partitions, offsets)
        found = np.zeros(len(at), dtype=np.int32)
        inside = at >= 0
        found[inside] = (self._shift[at[inside]] + offsets.to_numpy()[inside]) // self._length
        return found


def marked(bitmap: bytes, blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """For each block whether its bit is set; as Spark has it, the lowest bit of a byte comes first."""
    bits: npt.NDArray[np.uint8] = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return bits[blocks].astype(bool)
