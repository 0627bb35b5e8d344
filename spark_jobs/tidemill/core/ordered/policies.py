"""Policies of buffers, as SPL names them: when a buffer flushes, evicts or triggers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

from tidemill.core.errors import DeclarationError
from tidemill.core.ordered.records import Number, is_number
from tidemill.core.time.times import duration, micros, positive_duration, show_duration

MOST_BY_TIME = 10_000
"""The most results of a key in a row that time alone brings in one batch: if there were more, batches had paused, or a
record has a wrong time."""


class Clock(StrEnum):
    """What a time policy looks at: event times with the watermark, or the recorded clock of batches."""

    EVENT_TIME = "event_time"
    BATCH_CLOCK = "batch_clock"


@dataclass(frozen=True, slots=True)
class CountPolicy:
    """So many records.

    Args:
        count: how many, at least 1.

    Raises:
        DeclarationError: the count is no such number.
    """

    count: int

    def __post_init__(self) -> None:
        check_count(self.count, "CountPolicy")

    def __str__(self) -> str:
        return f"count {self.count}"


@dataclass(frozen=True, slots=True)
class DeltaPolicy:
    """An attribute grew by more than a threshold; values that fall never count.

    A record without a value of the attribute (null, infinite or NaN) cannot be compared: it joins no buffer, and goes
    to the late table, without a window.

    Args:
        attribute: the column, of numbers.
        threshold: by how much more than this it must grow; zero or more.

    Raises:
        DeclarationError: there is no attribute, or no such threshold.
    """

    attribute: str
    threshold: Number

    def __post_init__(self) -> None:
        check_delta(self.attribute, self.threshold, "DeltaPolicy")

    def __str__(self) -> str:
        return f"delta {self.attribute} > {self.threshold}"


@dataclass(frozen=True, slots=True)
class TimePolicy:
    """So much time.

    Args:
        length: how much, longer than nothing.
        clock: "event_time", or "batch_clock" for the clock that each batch records.

    Raises:
        DeclarationError: the length is no such duration, or there is no such clock.
    """

    length: str | timedelta
    clock: str = Clock.EVENT_TIME

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", positive_duration(self.length, "the length of a TimePolicy"))
        try:
            object.__setattr__(self, "clock", Clock(self.clock))
        except ValueError:
            known = " or ".join(f'"{each.value}"' for each in Clock)
            raise DeclarationError(f"the clock of a TimePolicy is {known}, found {self.clock!r}") from None

    @property
    def micros(self) -> int:
        """The length in microseconds."""
        return micros(duration(self.length))

    @property
    def uses_clock(self) -> bool:
        """Whether it looks at the clock of batches."""
        return self.clock == Clock.BATCH_CLOCK

    def __str__(self) -> str:
        return f"time {show_duration(duration(self.length))} of {'batch clock' if self.uses_clock else 'event time'}"


@dataclass(frozen=True, slots=True)
class PunctuationPolicy:
    """A marker among the records, which is never data.

    Args:
        marker: the column that is true for markers.

    Raises:
        DeclarationError: there is no column.
    """

    marker: str

    def __post_init__(self) -> None:
        check_column_named(self.marker, "the marker of a PunctuationPolicy")

    def __str__(self) -> str:
        return f"punctuation {self.marker}"


Policy: TypeAlias = CountPolicy | DeltaPolicy | TimePolicy | PunctuationPolicy


def check_count(count: object, what: str) -> None:
    """Refuse what is no whole number above zero."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise DeclarationError(
            f"{what} needs a whole number of at least 1, found {count!r}", fix=f"write for example {what}(100)"
        )


def check_delta(attribute: object, threshold: object, what: str) -> None:
    """Refuse what is no column with a threshold."""
    check_column_named(attribute, f"the attribute of a {what}")
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not is_number(threshold):
        raise DeclarationError(
            f"the threshold of a {what} is a number, found {threshold!r}", fix=f'write for example {what}("price", 2)'
        )
    if threshold < 0:
        raise DeclarationError(
            f"the threshold of a {what} must not be negative, found {threshold!r}", fix="leave out the minus"
        )


def check_column_named(column: object, what: str) -> None:
    """Refuse what cannot name a column."""
    if not isinstance(column, str) or not column:
        raise DeclarationError(f"{what} is the name of a column, found {column!r}", fix='write for example "price"')
