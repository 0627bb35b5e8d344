"""What sliding windows of an hour by a minute cost beside tumbling ones of a minute. Run it by hand:

python benchmarks/bench/bench_sliding.py [--keys 5000,200000] [--batches 300,90] [--out build/bench_sliding.json]

Each batch is a minute of event time in which every key occurs: four times with 5,000 keys, once with 200,000. So after
60 batches every window is whole. Both pipelines read the same topic in turn, in one process with Spark's default heap
of 1 GB, and publish a row for each key and batch.

Figures are medians of the 20 batches around some: 70, 150 and the last ones. A ratio is the median of the ratios of
batches that ran one after the other, so that what else the machine did then was the same for both. `cpu_s` is processor
time of this process, of Java and of Python's workers. Memory is that of this process, and of Java after a collection.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
EACH = ("seconds", "cpu_seconds")
PIPELINES = ("by_minute", "by_hour")
EARLY, MIDDLE, AROUND = 70, 150, 10


def main() -> int:
    """Run the batches, tell the figures, and fail when they are not those that ADR 30 promises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default="5000,200000")
    parser.add_argument("--batches", default="300,90", help="for each number of keys; the last one for the rest")
    parser.add_argument("--only", choices=PIPELINES, help="leave the other one out")
    parser.add_argument("--out", type=Path, default=Path("build/bench_sliding.json"))
    given = parser.parse_args()
    from bench.suite import bench_session

    found = {}
    for keys, batches in _sizes(given.keys, given.batches):
        with tempfile.TemporaryDirectory(prefix="tidemill-sliding-") as folder, bench_session() as spark:
            found[str(keys)] = measured(spark, Path(folder), keys, batches, only=given.only)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps({k: {n: v for n, v in f.items() if n not in EACH} for k, f in found.items()}, indent=2))
    return 0 if all(f.get("ratio", 0) <= 1.5 and f.get("cpu_late_to_early", 0) <= 1.1 for f in found.values()) else 1


def _sizes(keys: str, batches: str) -> list[tuple[int, int]]:
    counts = [int(n) for n in batches.split(",")]
    return [(int(k), counts[min(i, len(counts) - 1)]) for i, k in enumerate(keys.split(","))]


def measured(spark: Any, folder: Path, keys: int, batches: int, *, only: str | None) -> dict[str, Any]:
    """Seconds of the batches of both pipelines, and the memory at some of them."""
    from bench.feed import Feed
    from tidemill.core.plan.planning import ReadLimit
    from tidemill.ledger.process import this_process
    from tidemill.project.project import Project
    from tidemill.project.settings import Settings
    from tidemill.run.batch import run_batch
    from tidemill.run.claiming import Request

    feed = Feed(folder / "log", Minutes(keys, times=max(20_000 // keys, 1)))  # type: ignore[arg-type]
    own = {"pipelines": str(HERE / "sliding" / "pipelines"), "contracts": str(HERE / "sliding" / "data_contracts")}
    project = Project(HERE, Settings(lake=str(folder / "lake"), log=str(folder / "log"), jars="", **own))
    names = [only] if only else list(PIPELINES)
    times = Times({name: [] for name in names}, {name: [] for name in names})
    memory = {}
    for number in range(1, batches + 1):
        feed.deliver()
        for name in names if number % 2 else reversed(names):
            request = Request(executor=this_process(None), clock=datetime.now(UTC), limit=ReadLimit(None))
            with times.of(name):
                run_batch(project, name, request, session=lambda: spark)
        if number in (EARLY, MIDDLE, batches):
            memory[str(number)] = used(spark)
        if number % 10 == 0:
            print(f"{keys:,} keys, batch {number}: {times.around(number)}  {used(spark)}", flush=True)
    return {"batches": batches, **times.compared(), "memory": memory, **times.each()}


@dataclass(frozen=True)
class Times:
    """What the batches of each pipeline took, by the clock and of the processor."""

    seconds: dict[str, list[float]]
    cpu_seconds: dict[str, list[float]]

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Measure one batch."""
        from bench.machine import cpu_seconds

        spent, begin = cpu_seconds(), time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - begin)
        self.cpu_seconds[name].append((cpu_seconds() or 0.0) - (spent or 0.0))

    def around(self, number: int) -> dict[str, Any]:
        """Medians of the batches around one of them."""
        done = len(next(iter(self.seconds.values())))
        part = (
            slice(max(number - AROUND - 1, 0), number + AROUND) if number + AROUND <= done else slice(-2 * AROUND, None)
        )
        found: dict[str, Any] = {}
        for kind, measured in (("s", self.seconds), ("cpu_s", self.cpu_seconds)):
            found[kind] = {name: round(median(values[part]), 3) for name, values in measured.items()}
        if len(self.seconds) == len(PIPELINES):
            found |= {"ratio": _ratio(self.seconds, part), "cpu_ratio": _ratio(self.cpu_seconds, part)}
        return found

    def compared(self) -> dict[str, Any]:
        """The figures that are promised, where the run is long enough for them.

        `ratio` is sliding to tumbling at the end; `late_to_early` that of the end to batch 70, of sliding.
        """
        done = len(next(iter(self.seconds.values())))
        if done <= EARLY:
            return {}
        early, late = self.around(EARLY), self.around(done)
        at = {str(n): self.around(n) for n in (EARLY, MIDDLE, done) if n <= done}
        found = {"at": at, **{name: late[name] for name in ("ratio", "cpu_ratio") if name in late}}
        if (sliding := PIPELINES[1]) in self.seconds:
            found["late_to_early"] = round(late["s"][sliding] / early["s"][sliding], 3)
            found["cpu_late_to_early"] = round(late["cpu_s"][sliding] / max(early["cpu_s"][sliding], 0.01), 3)
        return found

    def each(self) -> dict[str, dict[str, list[float]]]:
        """Every batch, so that peaks can be seen."""
        measured = zip(EACH, (self.seconds, self.cpu_seconds), strict=True)
        return {kind: {name: [round(s, 3) for s in v] for name, v in by.items()} for kind, by in measured}


def _ratio(measured: dict[str, list[float]], part: slice) -> float:
    """Sliding to tumbling, of batches that ran one after the other."""
    tumbling, sliding = (measured[name][part] for name in PIPELINES)
    return round(median(s / max(t, 0.01) for s, t in zip(sliding, tumbling, strict=True)), 3)


def used(spark: Any) -> dict[str, int]:
    """Megabytes: of Java's heap after a collection, of this process now and at most."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    spark._jvm.java.lang.System.gc()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "heap": (runtime.totalMemory() - runtime.freeMemory()) // 2**20,
        "process": pages * resource.getpagesize() // 2**20,
        "process_peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 2**10,
    }


class Minutes:
    """Traffic in which every key occurs `times` a minute, up to five seconds out of order."""

    def __init__(self, keys: int, *, times: int) -> None:
        self._keys, self._times = keys, times

    def batch(self, index: int) -> Any:
        """The records of one minute: binary columns `key` and `value`."""
        import numpy as np
        import polars as pl

        from bench.records import OUT_OF_ORDER, START, _as_json, _user

        rng = np.random.default_rng((index, self._keys))
        size = self._keys * self._times
        users = rng.permutation(np.repeat(np.arange(self._keys), self._times))
        begin = int(START.timestamp()) * 1000 + index * 60_000
        early = rng.integers(0, OUT_OF_ORDER.total_seconds() * 1000, size)
        ts = begin + np.arange(size, dtype=np.int64) * 60_000 // size - early
        columns = pl.DataFrame(
            {
                "ts": pl.Series("ts", ts).cast(pl.Datetime("ms")),
                "user": users,
                "page": rng.integers(0, 1_000, size),
                "status": np.full(size, 200),
                "bytes": rng.integers(200, 100_000, size),
                "ms": rng.gamma(2.0, 40.0, size).astype(np.int64) + 1,
            }
        )
        key, value = _user().cast(pl.Binary).alias("key"), _as_json().cast(pl.Binary).alias("value")
        return columns.select(key, value).to_arrow(compat_level=pl.CompatLevel.oldest())


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
