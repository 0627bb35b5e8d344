"""Whether row rules only became easier to meet, judged by their text."""

from __future__ import annotations

import json
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

_PATTERN = re.compile(r"\(\?d\)\\+A\(\?:(.*?)\)\\+z")


@dataclass(frozen=True, slots=True)
class _Bound:
    """A comparison of a column, or of its length, with a number."""

    what: tuple[tuple[str, str], ...]
    operator: str
    bound: Decimal

    def implies(self, other: _Bound) -> bool:
        """Whether each value that meets this bound meets the other one."""
        if (self.what, self.operator[0]) != (other.what, other.operator[0]):
            return False
        if self.bound == other.bound:
            # Only `>= 1` and `<= 1` allow 1 itself.
            return "=" not in self.operator or "=" in other.operator
        return (self.bound < other.bound) is (self.operator[0] == "<")


def implied(before: Iterable[str], now: Iterable[str]) -> bool:
    """Whether every row that met all predicates of `before` meets all of `now`.

    Only bounds are compared. Any other predicate must stand in `before` with the same words.
    """
    known = [part for predicate in before for part in _parts(predicate)]
    return all(any(_meets(old, new) for old in known) for predicate in now for new in _parts(predicate))


def without_eased(before: str, now: str) -> tuple[str, str]:
    """Written rules without those that stayed or only became easier to meet: nobody needs to decide about these."""
    old, new = ([rule["sql"] for rule in json.loads(text)] for text in (before, now))
    eased = [(o, n) for o in old for n in new if implied([o], [n])]
    gone, come = {o for o, _ in eased}, {n for _, n in eased}
    left = [o for o in old if o not in gone], [n for n in new if n not in come]
    one, other = (json.dumps([{"sql": text} for text in texts]) for texts in left)
    return one, other


def as_written(rule: str) -> str:
    """The text of a rule with its patterns as the contract has them, without what Tidemill writes around them."""
    return _PATTERN.sub(r"\1", rule)


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
