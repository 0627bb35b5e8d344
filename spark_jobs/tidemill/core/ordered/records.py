"""What a fold takes: the records of one key in their order, and the moments between which a batch lies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tidemill.core.time.watermarks import BEGINNING

Number: TypeAlias = int | float
"""What a delta compares. A decimal is given as a whole number of its smallest unit."""


@dataclass(slots=True)
class Records:
    """The records of one key in one batch, by column, in order of arrival.

    A record is known by its *position*, its index here. `times` are event times in microseconds since 1970. `values`
    holds the attribute that a delta compares, `markers` says which records are punctuation, and `places` has topic,
    partition and offset: each may be left empty where nothing asks for it.
    """

    times: Sequence[int] = ()
    values: Sequence[Number | None] = ()
    markers: Sequence[bool] = ()
    places: Sequence[tuple[str, int, int]] = ()

    def data(self) -> Sequence[int]:
        """The positions of all records that are no markers."""
        if self.markers:
            return [position for position, marker in enumerate(self.markers) if not marker]
        return range(len(self.times))


class Moment(NamedTuple):
    """A watermark, and the clock of a batch; both in microseconds, neither ever goes back."""

    watermark: int = BEGINNING
    clock: int = BEGINNING


def is_number(value: Number | None) -> bool:
    """Whether a delta can compare this: a value that is neither null, nor infinite, nor NaN."""
    return value is not None and (isinstance(value, int) or math.isfinite(value))
