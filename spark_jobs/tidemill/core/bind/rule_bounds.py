"""Whether row rules only became easier to meet, judged by their text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from tidemill.core.identity.written import words

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_COLUMN = r"(?:`[^`]+`|\w+)"
_BOUND = re.compile(
    rf"(?P<what>{_COLUMN}|(?:char_)?length\({_COLUMN}\)) (?P<operator><=|>=|<|>) (?P<bound>{_NUMBER})(?:D|BD|L)?"
)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A comparison of a column, or of its length, with a number."""

    what: tuple[tuple[str, str], ...]
    operator: str
    bound: Decimal

    def implies(self, other: _Bound) -> bool:
        """Whether each value that meets this bound meets the other one."""
        if (self.what, self.operator) != (other.what, other.operator):
            return False
        return self.bound <= other.bound if self.operator[0] == "<" else self.bound >= other.bound


def implied(before: Iterable[str], now: Iterable[str]) -> bool:
    """Whether every row that met all predicates of `before` meets all of `now`.

    Only bounds are compared. Any other predicate must stand in `before` with the same words.
    """
    known = [part for predicate in before for part in _parts(predicate)]
    return all(any(_meets(old, new) for old in known) for predicate in now for new in _parts(predicate))


def _meets(old: object, new: object) -> bool:
    return old == new or (isinstance(old, _Bound) and isinstance(new, _Bound) and old.implies(new))


def _parts(predicate: str) -> Iterator[object]:
    """The bounds that a predicate joins with AND, or the words of any other."""
    found = [_BOUND.fullmatch(part) for part in predicate.split(" AND ")]
    if not all(found):
        yield tuple(words(predicate))
        return
    for match in found:
        assert match is not None
        yield _Bound(tuple(words(match["what"])), match["operator"], Decimal(match["bound"]))
