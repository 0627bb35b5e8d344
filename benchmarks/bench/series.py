"""A series: one batch size, everyone in turn, round after round, on the same records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.contestant import Arena, Contestant
from bench.feed import Feed, partitions_for
from bench.machine import cpu_seconds
from bench.measured import Series
from bench.memory import forget_peaks, peaks_mb
from bench.workload import LOG_SCHEMA, Workload
from bench.workloads import BENCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How many rounds: `warm` ones that do not count, then `counted` ones, of which `least` in any case."""

    size: int
    warm: int
    counted: int
    least: int = 3


@dataclass
class Course:
    """Runs a plan. `told` hears who runs next in which round.

    After `enough`, a `time.monotonic()`, no more rounds than the least that a plan asks for; after `deadline` none.
    """

    spark: SparkSession
    folder: Path
    told: Callable[[str], None]
    enough: float
    deadline: float
    workload: Workload = BENCH
    _seconds: dict[str, list[float]] = field(default_factory=dict, init=False)
    _cpu_seconds: dict[str, list[float]] = field(default_factory=dict, init=False)
    _peak_mb: dict[str, dict[str, int]] = field(default_factory=dict, init=False)

    def run(self, plan: Plan, contestants: Sequence[Contestant]) -> Series:
        """All rounds, then the comparison of what was published."""
        log = self.folder / "log"
        feed = Feed(
            log, self.workload.records(plan.size), topic=self.workload.topic, partitions=partitions_for(plan.size)
        )
        for contestant in contestants:
            contestant.prepare(self._arena(log, contestant))
        self._seconds = {contestant.name: [] for contestant in contestants}
        self._cpu_seconds = {contestant.name: [] for contestant in contestants}
        self._peak_mb = {contestant.name: {} for contestant in contestants}
        rounds = 0
        while self._goes_on(plan, rounds):
            self._round(plan, rounds, feed, contestants)
            rounds += 1
        return self._compared(plan, rounds, contestants)

    def _arena(self, log: Path, contestant: Contestant) -> Arena:
        return Arena(spark=self.spark, log=log, lake=self.folder / contestant.name, workload=self.workload)

    def _goes_on(self, plan: Plan, rounds: int) -> bool:
        counted, now = rounds - plan.warm, time.monotonic()
        wanted = plan.counted if now < self.enough else plan.least
        return counted < wanted and now < self.deadline

    def _round(self, plan: Plan, number: int, feed: Feed, contestants: Sequence[Contestant]) -> None:
        delivery = feed.deliver()
        # Everyone is first, second and last in turn: caches and noise of the machine favour nobody.
        turn = number % len(contestants)
        for contestant in (*contestants[turn:], *contestants[:turn]):
            self.told(f"{plan.size:,} records, round {number + 1}, {contestant.name}")
            forget_peaks()
            before = cpu_seconds()
            seconds = contestant.round(delivery)
            after = cpu_seconds()
            if number >= plan.warm:
                self._seconds[contestant.name].append(seconds)
                self._keep_peaks(contestant.name)
                if before is not None and after is not None:
                    self._cpu_seconds[contestant.name].append(after - before)

    def _keep_peaks(self, name: str) -> None:
        kept = self._peak_mb[name]
        for where, peak in peaks_mb().items():
            kept[where] = max(kept.get(where, 0), peak)

    def _compared(self, plan: Plan, rounds: int, contestants: Sequence[Contestant]) -> Series:
        self.told(f"{plan.size:,} records, comparing what was published")
        log = self.spark.read.schema(LOG_SCHEMA).option("recursiveFileLookup", "true")
        segments = log.option("pathGlobFilter", "*.parquet").parquet(str(self.folder / "log"))
        expected = self.workload.compared(self.workload.rows(segments), rounds).cache()
        differing = {}
        for contestant in contestants:
            rows = contestant.rows()
            if rows is not None:
                found = self.workload.compared(rows, rounds)
                differing[contestant.name] = found.exceptAll(expected).count() + expected.exceptAll(found).count()
        settled = expected.count()
        expected.unpersist()
        return Series(
            size=plan.size,
            seconds=self._seconds,
            cpu_seconds=self._cpu_seconds,
            settled=settled,
            differing=differing,
            peak_mb=self._peak_mb,
        )
