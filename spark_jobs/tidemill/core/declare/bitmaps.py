"""Aggregates whose state is bits: which numbers occurred, and a Bloom filter of any values.

Spark's bitmaps have 32,768 bits. A longer one is several of them in a row, and their bytes in this order are the state
and the published value. So the same values give the same bytes, in whatever order and batches they came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidemill.core.contract.schema import DataType
from tidemill.core.declare.aggregates import Aggregate, Triple, single
from tidemill.core.errors import DeclarationError, shown
from tidemill.core.given import check_text, check_whole
from tidemill.core.sql import bits

MOST_BITMAPS = 128
"""How many bitmaps a value has at most: 512 KiB."""

_MOST_PARTS = 30


@dataclass(frozen=True, slots=True)
class Bitmap(Aggregate):
    """Which of the whole numbers 0 to `size` - 1 occurred: a bit for each, so it is exact and small.

    The value is binary: number n is bit n % 8, counted from the lowest, of byte n // 8. Spark's `bitmap_count` counts
    the numbers, and `contains` looks for one. The value is null, and the audit warns, as soon as one number is outside;
    so filter such records before.

    A row of state is as large as the value; give few keys a bitmap. In a contract, the column has `logicalType: string`
    and `physicalType: binary`. Spark computes it, so no batch of such a table runs without.

    Args:
        expression: Spark SQL over one row that gives a whole number; null is left out.
        size: how many numbers there are, at most 4,194,304. A value has 4 KiB for every 32,768, rounded up.

    Raises:
        DeclarationError: the size is no whole number within these bounds.
    """

    expression: str
    size: int = bits.SIZE

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        check_whole(self.size, "the size of Bitmap", 1, MOST_BITMAPS * bits.SIZE)

    @property
    def triple(self) -> Triple:  # noqa: D102
        value, inside = _number(self.expression), self._inside(self.expression)
        bitmaps = self._bitmaps
        return Triple(
            partial={
                "bits": bits.in_a_row([bits.filled(inside, value, part, bitmaps) for part in range(bitmaps)]),
                "outside": f"count_if(({self.expression}) IS NOT NULL AND NOT coalesce({inside}, false))",
            },
            merge={"bits": bits.united("{bits}", bitmaps), "outside": "sum({outside})"},
            finish="CASE WHEN {outside} = 0 THEN {bits} END",
        )

    def overflowed(self, wanted: DataType) -> str:  # noqa: D102
        del wanted
        return "{outside} > 0"

    @property
    def _bitmaps(self) -> int:
        return -(-self.size // bits.SIZE)

    def _inside(self, number: str) -> str:
        whole = f"try_cast({number} AS DOUBLE) = {_number(number)}"
        return f"{_number(number)} BETWEEN 0 AND {self.size - 1} AND {whole}"

    def contains(self, bitmap: str, number: str) -> str:
        """Spark SQL that says whether a number is in a bitmap; null if one of the two is null.

        A bitmap of another `size` gives null, or false for numbers that only one of the two sizes has a bit for.

        Args:
            bitmap: Spark SQL that gives a published value of this aggregate, with the same `size`.
            number: Spark SQL that gives a number. One that no bit stands for is not in the bitmap.

        Raises:
            DeclarationError: an argument is no text.
        """
        check_text(bitmap, "the bitmap of Bitmap.contains", '"users.seen"')
        check_text(number, "the number of Bitmap.contains", '"user"')
        inside = self._inside(number)
        found = f"coalesce({inside}, false) AND {bits.is_set(bitmap, f'if({inside}, {_number(number)}, 0L)')}"
        return bits.asked(bitmap, self._bitmaps, number, found)


@dataclass(frozen=True, slots=True)
class BloomFilter(Aggregate):
    """A Bloom filter of the values that are not null: it knows each of them, and takes few others for one of them.

    `might_contain` asks it. It finds every value that came. After `items` different values it also finds a share of
    about `fpp` of all others; after more values, a larger share. Filters of the same arguments are equal if the same
    values came, in any order and any batches. A filter is as large with one value as with all of them, and so is each
    row of state: 120 KiB for 100,000 items. Give few keys one.

    The value is binary, as that of `Bitmap`: k parts of m bits, one after the other, with bits in the same order. Part
    i, from 0, has the bits `pmod(xxhash64(text, i), m)` of all values as texts, with Spark's `xxhash64`. After n
    values, one that never came is found with probability (1 - exp(-n / m)) ** k. Of the pairs that give at most `fpp`
    the one with the fewest bits is taken, where m is a multiple of 32,768.

    Args:
        expression: Spark SQL over one row; values count as the texts that they cast to.
        items: how many different values are expected, at least 1. To change it later needs a rebuild.
        fpp: the false-positive probability after so many, above 0 and below 1.

    Raises:
        DeclarationError: a number is out of bounds, or the filter needs more than 512 KiB. At an `fpp` of 0.01 these
            are enough for 433,000 values.
    """

    expression: str
    items: int = 20_000
    fpp: float = 0.01

    def __post_init__(self) -> None:
        Aggregate.__post_init__(self)
        check_whole(self.items, "items of BloomFilter", 1, MOST_BITMAPS * bits.SIZE)
        given: object = self.fpp
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
            raise DeclarationError(
                f"fpp of BloomFilter is a number above 0 and below 1, found {shown(given)}",
                fix="write for example 0.01",
            )
        parts, bitmaps = self.shape
        if parts * bitmaps > MOST_BITMAPS:
            raise DeclarationError(
                f"BloomFilter of {self.items:,} items with an fpp of {self.fpp} needs more than "
                f"{MOST_BITMAPS * bits.SIZE // 8:,} bytes",
                fix='divide the values among several filters, for example key_by(part="pmod(xxhash64(user), 16)"), or '
                "take a larger fpp",
            )

    @property
    def shape(self) -> tuple[int, int]:
        """How many parts there are, and how many bitmaps of 32,768 bits each has: the least product."""
        shapes = ((k, _bitmaps(self.items, self.fpp, k)) for k in range(1, _MOST_PARTS + 1))
        return min(shapes, key=lambda shape: shape[0] * shape[1])

    @property
    def triple(self) -> Triple:  # noqa: D102
        parts, bitmaps = self.shape
        there = f"({self.expression}) IS NOT NULL"
        filled = [
            bits.filled(there, _hashed(self.expression, part, bitmaps), bitmap, bitmaps)
            for part in range(parts)
            for bitmap in range(bitmaps)
        ]
        return single(bits.in_a_row(filled), bits.united("{value}", parts * bitmaps))

    def might_contain(self, bloom_filter: str, value: str) -> str:
        """Spark SQL that says whether a value may have come: never false for one that did, and false for most others.

        It gives null if the filter or the value is null, or if the filter has another length than those of this one. A
        filter of other `items` and `fpp` may have the same length: then the answer is wrong, and nothing says so. For
        example, in a query that joins a table `seen` of filters:
        `BloomFilter("user", items=100_000).might_contain("seen.users", "orders.user")`.

        Args:
            bloom_filter: Spark SQL that gives a published value of this aggregate, with the same `items` and `fpp`.
            value: Spark SQL that gives a value. It is found by the text that it casts to: 5 is not 5.0.

        Raises:
            DeclarationError: an argument is no text.
        """
        check_text(bloom_filter, "the filter of BloomFilter.might_contain", '"users.seen"')
        check_text(value, "the value of BloomFilter.might_contain", '"user"')
        parts, bitmaps = self.shape
        places = (f"{part * bitmaps * bits.SIZE}L + {_hashed(value, part, bitmaps)}" for part in range(parts))
        asked = " AND ".join(bits.is_set(bloom_filter, bit) for bit in places)
        return bits.asked(bloom_filter, parts * bitmaps, value, asked)


def _bitmaps(items: int, fpp: float, parts: int) -> int:
    """How many bitmaps each of so many parts needs."""
    filled = fpp ** (1 / parts)
    needed = 0.0 if filled == 1 else -items / math.log1p(-filled) / bits.SIZE
    return max(1, math.ceil(min(needed, MOST_BITMAPS + 1)))


def _number(expression: str) -> str:
    return f"try_cast({expression} AS BIGINT)"


def _hashed(value: str, part: int, bitmaps: int) -> str:
    """The bit of a value in a part."""
    return f"pmod(xxhash64(CAST({value} AS STRING), {part}), {bitmaps * bits.SIZE}L)"
