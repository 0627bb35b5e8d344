"""Whether a batch grows slower with the number of batches before it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.baselines import Floor
from bench.contestant import Arena, Contestant
from bench.feed import Feed
from bench.records import Traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EARLY, LATE = 100, 2_000
AROUND = 25
"""A batch stands for the median of itself, the 25 before it and the 25 after it."""
RECORDS = 200


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


def run_steady(
    spark: SparkSession, folder: Path, contestant: Contestant, *, told: Callable[[str], None], deadline: float
) -> Steady:
    """Small batches up to the late one, or until the deadline (a `time.monotonic()`)."""
    log = folder / "log"
    feed = Feed(log, Traffic(size=RECORDS), partitions=1)
    floor = Floor()
    for participant in (contestant, floor):
        participant.prepare(Arena(spark=spark, log=log, lake=folder / participant.name))
    seconds: list[float] = []
    bare: list[tuple[int, float]] = []
    while len(seconds) < LATE + AROUND and time.monotonic() < deadline:
        number = len(seconds) + 1
        told(f"steady: batch {number:,} of {LATE + AROUND:,}")
        delivery = feed.deliver()
        seconds.append(contestant.round(delivery))
        if min(abs(number - EARLY), abs(number - LATE)) <= AROUND:
            bare.append((number, floor.round(delivery)))
    return Steady(seconds=seconds, bare=bare)
