"""Whether a batch grows slower with the number of batches before it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.baselines import Floor
from bench.contestant import Arena, Contestant
from bench.feed import Feed
from bench.measured import AROUND, EARLY, LATE, RECORDS, Steady
from bench.records import Traffic
from bench.workloads import BENCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_steady(
    spark: SparkSession, folder: Path, contestant: Contestant, *, told: Callable[[str], None], deadline: float
) -> Steady:
    """Small batches up to the late one, or until the deadline (a `time.monotonic()`)."""
    log = folder / "log"
    feed = Feed(log, Traffic(size=RECORDS), partitions=1)
    floor = Floor()
    for participant in (contestant, floor):
        participant.prepare(Arena(spark=spark, log=log, lake=folder / participant.name, workload=BENCH))
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
