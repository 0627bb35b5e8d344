"""How many rows may break a rule of a table."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_ONE: Mapping[str, Callable[[float, float], bool]] = {
    "mustBe": operator.eq,
    "mustNotBe": operator.ne,
    "mustBeGreaterThan": operator.gt,
    "mustBeGreaterOrEqualTo": operator.ge,
    "mustBeLessThan": operator.lt,
    "mustBeLessOrEqualTo": operator.le,
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

    def allows(self, bad: int, count: int) -> bool:
        """Whether so many bad rows of all are allowed."""
        # Shares are compared without a division: 1 of 3 rows is more than 33.3 percent, and no float rounds it.
        found, numbers = (100 * bad, [n * max(count, 1) for n in self.numbers]) if self.percent else (bad, self.numbers)
        if compare := _ONE.get(self.comparison):
            return compare(found, numbers[0])
        return (numbers[0] <= found <= numbers[1]) is (self.comparison == "mustBeBetween")

    def __str__(self) -> str:
        """For example "mustBeLessThan 5 percent"."""
        return f"{self.comparison} {', '.join(map(str, self.numbers))} {'percent' if self.percent else 'rows'}"
