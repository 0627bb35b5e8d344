"""Keys go where Kafka's own producer sends them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.log.partitioning import ByKey, RoundRobin, deal, murmur2, murmur2_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [  # from Kafka's UtilsTest
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_equals_kafkas(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


def plain_murmur2(data: bytes) -> int:
    """The hash, byte by byte with Python's integers."""
    mask, multiplier = 0xFFFFFFFF, 0x5BD1E995
    hashed = 0x9747B28C ^ len(data)
    for start in range(0, len(data) - len(data) % 4, 4):
        word = int.from_bytes(data[start : start + 4], "little") * multiplier & mask
        word ^= word >> 24
        hashed = (hashed * multiplier & mask) ^ (word * multiplier & mask)
    rest = data[len(data) - len(data) % 4 :]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * multiplier & mask
    hashed ^= hashed >> 13
    hashed = hashed * multiplier & mask
    hashed ^= hashed >> 15
    return hashed - 2**32 if hashed >= 2**31 else hashed


@given(st.lists(st.binary(max_size=40)))
def test_murmur2_of_many_keys_equals_that_of_each(keys: list[bytes]) -> None:
    assert murmur2_of(keys).tolist() == [plain_murmur2(key) for key in keys]


def table_of(*keys: bytes | None) -> pa.Table:
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(range(len(keys)))})


def test_nine_keyless_records_over_three_partitions_are_three_each() -> None:
    shares, next_slot = deal(table_of(*[None] * 9), RoundRobin(), 3, 0)
    assert {number: share["value"].to_pylist() for number, share in shares} == {
        0: [0, 3, 6],
        1: [1, 4, 7],
        2: [2, 5, 8],
    }
    assert next_slot == 9


def test_round_robin_takes_no_notice_of_keys() -> None:
    shares, _ = deal(table_of(b"k", b"k", b"k"), RoundRobin(), 3, 1)
    assert [(number, share["value"].to_pylist()) for number, share in shares] == [(0, [2]), (1, [0]), (2, [1])]


def test_same_key_goes_to_one_partition_in_its_order() -> None:
    shares, next_slot = deal(table_of(b"a", b"b", b"a", b"abc", b"a"), ByKey(), 10, 0)
    found = {number: share["value"].to_pylist() for number, share in shares}
    assert found[(murmur2(b"a") & 0x7FFFFFFF) % 10] == [0, 2, 4]
    assert found[479470107 % 10] == [3]
    assert next_slot == 0


def test_negative_hash_gives_a_partition_like_kafkas() -> None:
    shares, _ = deal(table_of(b"foobar"), ByKey(), 7, 0)
    assert [number for number, _ in shares] == [(-790332482 & 0x7FFFFFFF) % 7]


def test_keyless_records_among_keyed_ones_are_dealt_in_turn() -> None:
    shares, next_slot = deal(table_of(None, b"21", None, None, b"21"), ByKey(), 3, 2)
    dealt = {value: number for number, share in shares for value in share["value"].to_pylist()}
    assert [dealt[0], dealt[2], dealt[3]] == [2, 0, 1]
    assert dealt[1] == dealt[4] == (-973932308 & 0x7FFFFFFF) % 3
    assert next_slot == 5


def test_empty_key_is_a_key() -> None:
    shares, next_slot = deal(table_of(b"", b""), ByKey(), 5, 0)
    assert [number for number, _ in shares] == [275646681 % 5]
    assert next_slot == 0


@pytest.mark.parametrize("partitioning", [ByKey(), RoundRobin()])
@pytest.mark.parametrize("partitions", [1, 3])
def test_nothing_is_dealt_to_nobody(partitioning: ByKey | RoundRobin, partitions: int) -> None:
    assert deal(table_of(), partitioning, partitions, 4) == ([], 4)


def test_chunked_keys_are_dealt_like_whole_ones() -> None:
    whole = table_of(b"a", None, b"b", b"a")
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 2), whole.slice(3)])
    for one, other in zip(deal(whole, ByKey(), 4, 0)[0], deal(chunked, ByKey(), 4, 0)[0], strict=True):
        assert one[0] == other[0]
        assert one[1].to_pydict() == other[1].to_pydict()


def test_uniform_keys_spread_over_ten_partitions() -> None:
    shares, _ = deal(table_of(*(b"user-%d" % n for n in range(100_000))), ByKey(), 10, 0)
    counts = np.array([len(share) for _, share in shares])
    assert len(counts) == 10
    assert counts.max() / counts.mean() <= 1.2
