"""Decides which partition a record goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]

_SEED = 0x9747B28C
_MULTIPLIER = 0x5BD1E995
_MASK = 0xFFFFFFFF

_Words = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class ByKey:
    """A key always goes to the same partition, the one that Kafka's default partitioner chooses.

    Records without a key go to the partitions in turn.
    """


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """All records go to the partitions in turn, whatever their keys."""


Partitioning = ByKey | RoundRobin


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 hash of a key, signed.

    The reference is `org.apache.kafka.common.utils.Utils.murmur2`.
    """
    return int(murmur2_of([data])[0])


def murmur2_of(keys: list[bytes]) -> npt.NDArray[np.int32]:
    """Compute `murmur2` of each key; keys of the same length are computed together."""
    hashes = np.empty(len(keys), dtype=np.int32)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        octets = np.frombuffer(b"".join(keys[row] for row in rows), dtype=np.uint8)
        hashes[rows] = _murmur2_rows(octets.reshape(len(rows), int(length))).view(np.int32)
    return hashes


def deal(
    records: pa.Table, partitioning: Partitioning, partitions: int, first_slot: int
) -> tuple[list[tuple[int, pa.Table]], int]:
    """Split records among partitions. Returns the records of each partition that gets some, and the next free slot.

    The records keep their order. The n-th record dealt in turn goes to partition `(first_slot + n) % partitions`.
    """
    match partitioning:
        case RoundRobin():
            chosen = (first_slot + np.arange(len(records))) % partitions
            next_slot = first_slot + len(records)
        case ByKey():
            chosen, next_slot = _by_key(records["key"], partitions, first_slot)
        case _:
            assert_never(partitioning)
    if partitions == 1:
        return ([(0, records)] if len(records) else []), next_slot
    order = np.argsort(chosen, kind="stable")
    found, starts = np.unique(chosen[order], return_index=True)
    shares = np.split(order, starts[1:])
    return [(int(p), records.take(rows)) for p, rows in zip(found, shares, strict=False)], next_slot


def _by_key(keys: pa.ChunkedArray, partitions: int, first_slot: int) -> tuple[npt.NDArray[np.int64], int]:
    distinct = keys.combine_chunks().dictionary_encode()
    keyless = np.asarray(distinct.is_null().to_numpy(zero_copy_only=False), dtype=bool)
    slots = first_slot + np.arange(int(keyless.sum()))
    chosen = np.empty(len(keyless), dtype=np.int64)
    chosen[keyless] = slots % partitions
    if not keyless.all():
        positive = murmur2_of(distinct.dictionary.to_pylist()) & 0x7FFFFFFF
        indices = distinct.indices.drop_null().to_numpy()
        chosen[~keyless] = (positive % partitions)[indices]
    return chosen, first_slot + len(slots)


def _murmur2_rows(octets: npt.NDArray[np.uint8]) -> _Words:
    """The hashes of keys of equal length, one key per row. The arithmetic wraps at 32 bits."""
    count, length = octets.shape
    multiplier = np.uint32(_MULTIPLIER)
    hashes = np.full(count, (_SEED ^ length) & _MASK, dtype=np.uint32)
    whole = length - length % 4
    words = np.ascontiguousarray(octets[:, :whole]).view("<u4")
    for column in range(whole // 4):
        word = words[:, column] * multiplier
        word ^= word >> np.uint32(24)
        hashes = (hashes * multiplier) ^ (word * multiplier)
    if length > whole:
        for place in range(length - whole):
            hashes ^= octets[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        hashes *= multiplier
    hashes ^= hashes >> np.uint32(13)
    hashes *= multiplier
    hashes ^= hashes >> np.uint32(15)
    return hashes
