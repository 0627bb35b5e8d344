"""Bitmaps and Bloom filters as they are declared: their size follows from what is asked of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from tidemill import Bitmap, BloomFilter
from tidemill.core.declare.bitmaps import MOST_BITMAPS
from tidemill.core.errors import DeclarationError
from tidemill.core.sql.bits import SIZE


@pytest.mark.parametrize("fpp", [0.5, 0.1, 0.01, 0.001, 1e-9, 1e-300, 1e-305, 5e-324, 0.9999999999999999])
@pytest.mark.parametrize("items", [1, 1_000, 20_000, 100_000])
def test_a_filter_is_as_small_as_its_false_positives_allow(items: int, fpp: float) -> None:
    try:
        parts, bitmaps = BloomFilter("user", items, fpp).shape
    except DeclarationError:
        assert fpp < 1e-8
        assert items >= 100_000 or fpp < 1e-200
        return

    def probability(k: int, b: int) -> float:
        return float((1 - math.exp(-items / (b * SIZE))) ** k)

    assert probability(parts, bitmaps) <= fpp * (1 + 1e-9)
    smaller = ((k, b) for k in range(1, parts * bitmaps) for b in range(1, MOST_BITMAPS) if k * b < parts * bitmaps)
    assert all(probability(k, b) > fpp for k, b in smaller if k <= 30)


def test_the_largest_filter_of_the_usual_probability_is_the_one_that_the_docs_name() -> None:
    assert math.prod(BloomFilter("user", items=433_000).shape) <= MOST_BITMAPS
    with pytest.raises(
        DeclarationError, match=r"434,000 items with an fpp of 0.01 needs more than 524,288 bytes"
    ) as caught:
        BloomFilter("user", items=434_000)
    assert "key_by(part=" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Bitmap(5), "the expression of Bitmap is a text, found 5"),
        (lambda: Bitmap("x", 0), "the size of Bitmap is a whole number from 1 to 4,194,304, found 0"),
        (lambda: Bitmap("x", 4_194_305), "from 1 to 4,194,304, found 4194305"),
        (lambda: Bitmap("x", True), "found True"),
        (lambda: Bitmap("x").contains("", "5"), "the bitmap of Bitmap.contains is a text, found ''"),
        (lambda: Bitmap("x").contains("bits", 5), "the number of Bitmap.contains is a text, found 5"),
        (lambda: BloomFilter(""), "the expression of BloomFilter is a text, found ''"),
        (lambda: BloomFilter("x", 0), "items of BloomFilter is a whole number from 1 to 4,194,304, found 0"),
        (lambda: BloomFilter("x", 1e5), "items of BloomFilter is a whole number"),
        (lambda: BloomFilter("x", fpp=0), "fpp of BloomFilter is a number above 0 and below 1, found 0"),
        (lambda: BloomFilter("x", fpp=1), "found 1"),
        (lambda: BloomFilter("x", fpp=float("nan")), "found nan"),
        (lambda: BloomFilter("x", fpp="1 %"), "found '1 %'"),
        (lambda: BloomFilter("x").might_contain(None, "x"), "the filter of BloomFilter.might_contain is a text"),
        (lambda: BloomFilter("x").might_contain("bits", 5), "the value of BloomFilter.might_contain is a text"),
    ],
)
def test_what_is_no_size_and_no_text_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        make()
