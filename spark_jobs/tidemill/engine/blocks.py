"""The planned offsets of an input, cut into blocks: a bit for each says where rejected and late records are.

The pass over a batch gives counts and aggregates, not the few records that end elsewhere. It leaves a bitmap of the
blocks that hold some, 4 kB however large the batch, and a second pass decodes only those: of 100,000 records with 1 %
rejected about 4 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

from tidemill.core.offsets import OffsetRange

COUNT = 8 * 4096
"""As many bits as the bitmap of Spark's `bitmap_construct_agg` has."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """At most `COUNT` blocks of equal length, which tile the ranges one after the other."""

    ranges: Sequence[OffsetRange]

    def of(self, partitions: pa.Array, offsets: pa.Array) -> npt.NDArray[np.int32]:
        """The block of each record, from 0; of an offset outside the ranges it is 0."""
        length = max(-(-sum(len(r) for r in self.ranges) // COUNT), 1)
        part, offset = partitions.to_numpy(), offsets.to_numpy()
        found = np.zeros(len(part), dtype=np.int32)
        before = 0
        for item in self.ranges:
            inside = (part == item.topic_partition.partition) & (offset >= item.from_offset)
            inside &= offset < item.until_offset
            found[inside] = (before + offset[inside] - item.from_offset) // length
            before += len(item)
        return found


def marked(bitmap: bytes, blocks: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """For each block whether its bit is set; as Spark has it, the lowest bit of a byte comes first."""
    bits: npt.NDArray[np.uint8] = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return bits[blocks].astype(bool)
