"""Bitmaps and Bloom filters on Spark: however records are divided, they hold what a set would hold."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from tidemill import Bitmap, BloomFilter
from tidemill.core.declare.aggregates import Aggregate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EDGES = (0, 1, 7, 8, 32_767, 32_768, 65_535, 65_536, 99_999)
OUTSIDE = (-1, 100_000, 2**63 - 1, -(2**63))


def published(spark: SparkSession, aggregate: Aggregate, rows: Iterable[tuple[int, Any]], of: str = "BIGINT") -> Any:
    """The value of rows, each with the batch in which it comes."""
    from pyspark.sql import functions as F

    triple, frame = aggregate.triple, spark.createDataFrame(list(rows), f"batch INT, x {of}")
    partials = frame.groupBy("batch").agg(*(F.expr(text).alias(name) for name, text in triple.partial.items()))
    names = {name: name for name in triple.partial}
    merged = partials.agg(*(F.expr(text.format_map(names)).alias(name) for name, text in triple.merge.items()))
    return merged.selectExpr(f"{triple.finish.format_map(names)} AS value").collect()[0]["value"]


def asked(spark: SparkSession, bits: bytes | None, question: str, values: Iterable[Any], of: str) -> list[Any]:
    frame = spark.createDataFrame([(bits, value) for value in values], f"bits BINARY, x {of}")
    return [row["found"] for row in frame.selectExpr(f"{question} AS found").collect()]


@pytest.mark.parametrize("size", [9, 32_768, 100_000])
def test_a_bitmap_has_the_bits_of_the_numbers_that_came(spark: SparkSession, size: int) -> None:
    chance, bitmap = random.Random(size), Bitmap("x", size)
    came = {n for n in (*EDGES, *(chance.randrange(100_000) for _ in range(500))) if n < size}
    rows = [(chance.randrange(5), n) for n in (*came, *came, None)]
    bits = published(spark, bitmap, rows)
    assert len(bits) == -(-size // 32_768) * 4_096
    assert {8 * at + bit for at, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1} == came
    assert published(spark, bitmap, [(0, n) for n in sorted(came)]) == bits
    assert asked(spark, bits, "bitmap_count(bits)", [None], "BIGINT") == [len(came)]
    numbers = [*EDGES, *OUTSIDE, *range(0, 100_000, 997)]
    question = bitmap.contains("bits", "x")
    assert asked(spark, bits, question, [*numbers, None], "BIGINT") == [*(n in came for n in numbers), None]
    assert asked(spark, None, question, [1], "BIGINT") == [None]
    assert asked(spark, bits + bits, question, [1], "BIGINT") == [None]


@pytest.mark.parametrize("beyond", OUTSIDE)
def test_a_bitmap_is_null_once_a_number_came_that_it_has_no_bit_for(spark: SparkSession, beyond: int) -> None:
    bitmap = Bitmap("x", size=100_000)
    assert published(spark, bitmap, [(0, 1), (1, beyond), (2, None)]) is None
    assert any(published(spark, bitmap, [(0, 1), (2, None)]))
    assert published(spark, bitmap, [(0, None)]) == bytes(16_384)


def test_a_bitmap_takes_whole_numbers_of_any_type(spark: SparkSession) -> None:
    bitmap = Bitmap("x", size=9)
    bits = published(spark, bitmap, [(0, 5), (1, 7)])
    assert published(spark, bitmap, [(0, 5.0), (1, 7.0)], "DOUBLE") == bits
    assert published(spark, bitmap, [(0, "5"), (1, "7")], "STRING") == bits
    for strange, of in ((5.5, "DOUBLE"), ("five", "STRING"), (float("nan"), "DOUBLE"), (float("inf"), "DOUBLE")):
        assert published(spark, bitmap, [(0, strange)], of) is None
        assert asked(spark, bits, bitmap.contains("bits", "x"), [strange], of) == [False]


def test_a_filter_knows_each_value_and_takes_few_others_for_one(spark: SparkSession) -> None:
    seen = BloomFilter("x", items=1_000, fpp=0.05)
    came = [*(f"user {n}" for n in range(999)), ""]
    bits = published(spark, seen, [(n % 7, value) for n, value in enumerate([*came, *came, None])], "STRING")
    assert published(spark, seen, [(0, value) for value in reversed(came)], "STRING") == bits
    question = seen.might_contain("bits", "x")
    assert asked(spark, bits, question, came, "STRING") == [True] * len(came)
    others = asked(spark, bits, question, [f"robot {n}" for n in range(2_000)], "STRING")
    assert 0 < sum(others) <= 0.06 * len(others)
    assert asked(spark, bits, question, [None], "STRING") == [None]
    assert asked(spark, None, question, [""], "STRING") == [None]
    assert asked(spark, bits + bits, question, [""], "STRING") == [None]
    assert published(spark, seen, [(0, None)], "STRING") == bytes(len(bits))


def test_values_of_other_types_count_as_texts(spark: SparkSession) -> None:
    seen = BloomFilter("x", items=10)
    bits = published(spark, seen, [(0, 5), (1, -7)])
    assert published(spark, seen, [(0, "5"), (0, "-7")], "STRING") == bits
    assert asked(spark, bits, seen.might_contain("bits", "x"), [5, -7, 6], "INT") == [True, True, False]
    assert asked(spark, bits, seen.might_contain("bits", "x"), [5.0], "DOUBLE") == [False]
