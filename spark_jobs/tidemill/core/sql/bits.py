"""Spark SQL of bits: several of Spark's bitmaps in a row, as one binary value."""

from __future__ import annotations

from collections.abc import Sequence

SIZE = 32_768
"""The number of bits in a bitmap of Spark."""


def filled(predicate: str, bit: str, bitmap: int, bitmaps: int) -> str:
    """Sets the bits of rows that meet a predicate, as far as they belong to this one of several bitmaps in a row."""
    if bitmaps == 1:
        return f"bitmap_construct_agg(CASE WHEN {predicate} THEN {bit} END)"
    mine = f"{predicate} AND shiftright({bit}, 15) = {bitmap}"
    return f"bitmap_construct_agg(CASE WHEN {mine} THEN {bit} & {SIZE - 1}L END)"


def in_a_row(bitmaps: Sequence[str]) -> str:
    """One value of several."""
    return bitmaps[0] if len(bitmaps) == 1 else f"concat({', '.join(bitmaps)})"


def united(value: str, bitmaps: int) -> str:
    """Sets the bits that are set in the value of any row."""
    size = SIZE // 8
    return in_a_row([f"bitmap_or_agg(substring({value}, {b * size + 1}, {size}))" for b in range(bitmaps)])


def is_set(value: str, bit: str) -> str:
    """Whether a bit is set. A byte becomes a number by way of its two hexadecimal digits."""
    byte = f"conv(hex(substring({value}, CAST(({bit}) div 8 AS INT) + 1, 1)), 16, 10)"
    return f"getbit(CAST({byte} AS BIGINT), CAST(({bit}) % 8 AS INT)) = 1"


def asked(value: str, bitmaps: int, about: str, found: str) -> str:
    """What was found; null if the value has not so many bitmaps, or if it is null, as what is asked about may be."""
    return f"(CASE WHEN length({value}) = {bitmaps * SIZE // 8} AND ({about}) IS NOT NULL THEN {found} END)"
