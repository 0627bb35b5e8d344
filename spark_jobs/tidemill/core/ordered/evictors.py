"""Evictors, as Flink names them: which records of a window a firing leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, TypeAlias

from tidemill.core.given import check_flag
from tidemill.core.ordered.policies import check_count, check_delta
from tidemill.core.ordered.records import Number
from tidemill.core.time.times import duration, micros, positive_duration, show_duration


class Held(NamedTuple):
    """A record that a window holds: its piece, its event time, and the attribute that a delta compares."""

    piece: int
    time: int
    value: Number | None


@dataclass(frozen=True, slots=True)
class CountEvictor:
    """Keeps the last records.

    Args:
        count: how many, at least 1.
        after: evict after the firing, which then still has all records, instead of before it.

    Raises:
        DeclarationError: the count is no such number.
    """

    count: int
    after: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_count(self.count, "CountEvictor")
        check_flag(self.after, "after")

    def keep(self, held: Sequence[Held]) -> list[Held]:
        """What is left of these records, which are in order of arrival."""
        return list(held[-self.count :])

    def __str__(self) -> str:
        return f"keep the last {self.count}{_when(self.after)}"


@dataclass(frozen=True, slots=True)
class TimeEvictor:
    """Evicts records older than the newest one minus a length; records exactly that old stay.

    Args:
        length: longer than nothing.
        after: evict after the firing, which then still has all records, instead of before it.

    Raises:
        DeclarationError: the length is no such duration.
    """

    length: str | timedelta
    after: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_duration(self.length, "the length of a TimeEvictor"))
        check_flag(self.after, "after")

    def keep(self, held: Sequence[Held]) -> list[Held]:
        """What is left of these records, which are in order of arrival."""
        edge = max((each.time for each in held), default=0) - micros(duration(self.length))
        return [each for each in held if each.time >= edge]

    def __str__(self) -> str:
        return f"keep the last {show_duration(duration(self.length))}{_when(self.after)}"


@dataclass(frozen=True, slots=True)
class DeltaEvictor:
    """Evicts records whose attribute is the threshold or more below that of the last record.

    A record without a value of the attribute (null, infinite or NaN) joins no window, and goes to the late table.

    Args:
        attribute: the column, of numbers.
        threshold: zero or more.
        after: evict after the firing, which then still has all records, instead of before it.

    Raises:
        DeclarationError: there is no attribute, or no such threshold.
    """

    attribute: str
    threshold: Number
    after: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_delta(self.attribute, self.threshold, "DeltaEvictor")
        check_flag(self.after, "after")

    def keep(self, held: Sequence[Held]) -> list[Held]:
        """What is left of these records, which are in order of arrival."""
        last = held[-1].value if held else None
        if last is None:
            return list(held)
        return [each for each in held if each.value is None or last - each.value < self.threshold]

    def __str__(self) -> str:
        return f"evict where the last {self.attribute} is {self.threshold} or more above{_when(self.after)}"


Evictor: TypeAlias = CountEvictor | TimeEvictor | DeltaEvictor


def _when(after: bool) -> str:
    return ", after the firing" if after else ""
