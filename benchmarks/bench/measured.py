"""What was measured, free of how: plain numbers and their medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

EARLY, LATE = 100, 2_000
AROUND = 25
"""A batch stands for the median of itself, the 25 before it and the 25 after it."""
RECORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was measured for one size: seconds per contestant and counted round, by the clock and of processors.

    `settled` is how many rows of closed windows were compared, `differing` how many of each contestant's
    differ from one query over the whole log. `peak_mb` is the most memory of any counted round, by contestant: of the
    driver and of the workers.
    """

    size: int
    seconds: Mapping[str, Sequence[float]]
    cpu_seconds: Mapping[str, Sequence[float]]
    settled: int
    differing: Mapping[str, int]
    peak_mb: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def median(self, name: str) -> float | None:
        """The median of a contestant, or None when it did not take part."""
        return median(self.seconds[name]) if self.seconds.get(name) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Seconds of each batch, from the first, and of a bare Spark job around the early and the late one.

    The bare job has no history: where it changed, the machine or the Java process did.
    """

    seconds: Sequence[float]
    bare: Sequence[tuple[int, float]]

    def around(self, batch: int) -> float | None:
        """The median around a batch (counted from 1), or None when it was not reached."""
        if len(self.seconds) < batch + AROUND:
            return None
        return median(self.seconds[batch - 1 - AROUND : batch + AROUND])

    def bare_around(self, batch: int) -> float | None:
        """The median of the bare job around a batch."""
        near = [seconds for number, seconds in self.bare if abs(number - batch) <= AROUND]
        return median(near) if near else None

    @property
    def hundreds(self) -> list[float]:
        """The median of each full hundred of batches: the curve."""
        whole = len(self.seconds) // 100
        return [median(self.seconds[100 * n : 100 * (n + 1)]) for n in range(whole)]
