"""How many rows may break a rule of a table."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from tidemill.core.contract.long_number import fraction_of

MOST_ROWS = 2**63
"""No table has so many rows."""

_ONE: Mapping[str, Callable[[Fraction, Fraction], bool]] = {
    "mustBe": operator.eq,
    "mustNotBe": operator.ne,
    "mustBeGreaterThan": operator.gt,
    "mustBeGreaterOrEqualTo": operator.ge,
    "mustBeLessThan": operator.lt,
    "mustBeLessOrEqualTo": operator.le,
}

_WORDS: Mapping[str, str] = {
    "mustBe": "exactly ",
    "mustNotBe": "any number but ",
    "mustBeGreaterThan": "more than ",
    "mustBeGreaterOrEqualTo": "at least ",
    "mustBeLessThan": "less than ",
    "mustBeLessOrEqualTo": "at most ",
    "mustBeBetween": "",
    "mustNotBeBetween": "any number but ",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """A comparison of the number of bad rows, or with `percent` of their share of all rows in percent.

    `comparison` is an operator of the Open Data Contract Standard. It has one number, or the two ends of a range, both
    included. Without rows, the share is 0.
    """

    comparison: str
    numbers: tuple[int | float, ...]
    percent: bool = False

    def allows(self, bad: float | Fraction, count: int) -> bool:
        """Whether so many bad rows of all are allowed."""
        # Shares are compared without a division: 1 of 3 rows is more than 33.3 percent, and no float rounds it.
        times, rows = (100, max(count, 1)) if self.percent else (1, 1)
        found, numbers = times * Fraction(bad), [fraction_of(n) * rows for n in self.numbers]
        if compare := _ONE.get(self.comparison):
            return compare(found, numbers[0])
        return (numbers[0] <= found <= numbers[1]) is (self.comparison == "mustBeBetween")

    def is_possible(self) -> bool:
        """Whether some number of bad rows, or some share of them, is allowed."""
        return any(self.allows(number, 100) for number in self.points())

    def is_certain(self) -> bool:
        """Whether every number of bad rows, or every share of them, is allowed."""
        return all(self.allows(number, 100) for number in self.points())

    def points(self) -> list[Fraction]:
        """The numbers of bad rows, or their shares, at which the answer may change, and one between any two of them."""
        if self.percent:
            none, all_ = Fraction(0), Fraction(100)
            ends = sorted({none, all_, *(min(max(fraction_of(n), none), all_) for n in self.numbers)})
            return [*ends, *((low + high) / 2 for low, high in pairwise(ends))]
        near = {math.floor(fraction_of(n)) + step for n in self.numbers for step in (-1, 0, 1, 2)}
        return sorted({Fraction(0), *(Fraction(n) for n in near if 0 <= n < MOST_ROWS)})

    @property
    def words(self) -> str:
        """For example "less than 5 percent of the rows"."""
        told = " to ".join(f"{number:,}" for number in self.numbers)
        unit = "percent of the rows" if self.percent else "row" if self.numbers == (1,) else "rows"
        return f"{_WORDS[self.comparison]}{told} {unit}"

    def __str__(self) -> str:
        """For example "mustBeLessThan 5 percent"."""
        return f"{self.comparison} {', '.join(map(str, self.numbers))} {'percent' if self.percent else 'rows'}"
