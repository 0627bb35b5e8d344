"""Numbers of a contract with more digits than a float keeps.

`0.12345678901234567891` is such a number. Python would read it as another one, without a word.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal as Exact
from fractions import Fraction


class LongNumber(float):
    """A float that remembers the number as it is written, and compares as that number.

    Beside it an ordinary float is the number that it is written as: 0.1 is 0.1. No such number equals a float.
    """

    __slots__ = ("exact",)

    exact: Exact

    def __new__(cls, text: str) -> LongNumber:
        """Read a number that `number_of` could not make a float."""
        made = super().__new__(cls, text)
        made.exact = Exact(text)
        return made

    def __reduce__(self) -> tuple[type[LongNumber], tuple[str]]:
        """Workers get the digits, too."""
        return LongNumber, (str(self.exact),)

    def __repr__(self) -> str:
        """All digits."""
        return str(self.exact)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        """All digits, unless the format wants fewer."""
        return format(self.exact, spec)

    def __floor__(self) -> int:
        """The greatest whole number that is not above this one."""
        return math.floor(self.exact)

    def __ceil__(self) -> int:
        """The least whole number that is not below this one."""
        return math.ceil(self.exact)

    def __hash__(self) -> int:
        """As whole numbers and decimals."""
        return hash(self.exact)

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same number."""
        return _is_plain(other) and self.exact == exact_of(other)

    def __ne__(self, other: object) -> bool:
        """Whether the other is another number."""
        return not self == other

    def __lt__(self, other: float) -> bool:
        """Whether this number is below the other."""
        return self.exact < exact_of(other)

    def __le__(self, other: float) -> bool:
        """Whether this number is not above the other."""
        return self.exact <= exact_of(other)

    def __gt__(self, other: float) -> bool:
        """Whether this number is above the other."""
        return self.exact > exact_of(other)

    def __ge__(self, other: float) -> bool:
        """Whether this number is not below the other."""
        return self.exact >= exact_of(other)


def number_of(text: str) -> float | None:
    """The number in a text: a float if that is written with the same digits; None if it is beyond all floats.

    A number nearer to 0 than every float is beyond them, too: its exponent may have no end.
    """
    number = float(text)
    if not number and not any(digit in "123456789" for digit in re.split("[eE]", text)[0]):
        return number
    if not number or not math.isfinite(number):
        return None
    return number if Exact(text) == Exact(repr(number)) else LongNumber(text)


def exact_of(number: object) -> Exact:
    """A number as it is written: 0.1 is exactly 0.1."""
    return number if isinstance(number, Exact) else Exact(repr(number))


def fraction_of(number: float) -> Fraction:
    """A number as it is written, for arithmetic that rounds nothing."""
    return Fraction(exact_of(number))


def json_of(value: object) -> object:
    """A value as JSON tells it apart from all others: numbers with more digits than a float has are an object."""
    return {"number": str(value)} if isinstance(value, LongNumber) else value


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | Exact) and not isinstance(value, bool)
