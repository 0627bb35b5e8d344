"""Blocks of offsets: every record is in the one that its offset says, and a bitmap finds it again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.log.offsets import OffsetRange, TopicPartition
from tidemill.engine.read.blocks import COUNT, Blocks, marked

STARTS_AND_LENGTHS = st.lists(st.tuples(st.integers(0, 2**60), st.integers(0, 50)), min_size=1, max_size=4)


def ranges_of(sizes: list[tuple[int, int]]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", p), start, start + length) for p, (start, length) in enumerate(sizes)]


def places(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return [(r.topic_partition.partition, offset) for r in ranges for offset in range(r.from_offset, r.until_offset)]


def blocks_of(ranges: list[OffsetRange], records: list[tuple[int, int]]) -> list[int]:
    partitions = pa.array([p for p, _ in records], pa.int32())
    offsets = pa.array([o for _, o in records], pa.int64())
    return Blocks(ranges).of(partitions, offsets).tolist()


def bitmap_of(numbers: list[int]) -> bytes:
    bits = np.zeros(COUNT, dtype=np.uint8)
    bits[numbers] = 1
    return np.packbits(bits, bitorder="little").tobytes()


@given(STARTS_AND_LENGTHS)
def test_while_there_are_blocks_enough_each_record_has_its_own(sizes):
    ranges = ranges_of(sizes)
    assert blocks_of(ranges, places(ranges)) == list(range(sum(map(len, ranges))))


@given(STARTS_AND_LENGTHS, st.randoms())
def test_marked_blocks_hold_every_record_that_was_marked(sizes, rng):
    records = places(ranges_of(sizes))
    chosen = [r for r in records if rng.random() < 0.2]
    blocks = np.array(blocks_of(ranges_of(sizes), records), dtype=np.int32)
    bitmap = bitmap_of(blocks_of(ranges_of(sizes), chosen))
    found = {r for r, there in zip(records, marked(bitmap, blocks), strict=True) if there}
    assert set(chosen) <= found


@pytest.mark.parametrize("length", [COUNT, COUNT + 1, 1_000_000, 2**40])
def test_a_large_batch_has_no_more_blocks_than_the_bitmap_bits(length):
    ranges = ranges_of([(7, length)])
    first, last = blocks_of(ranges, [(0, 7), (0, 7 + length - 1)])
    assert first == 0
    assert COUNT / 2 <= last < COUNT


@pytest.mark.spark
def test_the_bitmap_is_the_one_that_spark_makes(spark):
    made = spark.sql("SELECT bitmap_construct_agg(id) AS b FROM VALUES (0L), (9L), (32767L), (NULL) AS t(id)")
    assert bytes(made.collect()[0]["b"]) == bitmap_of([0, 9, 32767])
