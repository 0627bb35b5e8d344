"""What sliding windows of an hour by a minute cost beside tumbling ones of a minute. Run it by hand:

python tests/bench/bench_sliding.py [--keys 5000,200000] [--batches 300] [--out build/bench_sliding.json]

Each batch is a minute of event time in which every key occurs: four times with 5,000 keys, once with 200,000. Both
pipelines read the same topic in turn, in one process with Spark's default heap of 1 GB, and publish a row for each key
and batch. Early is what batches 60 to 80 took, when the first windows are whole, late what the last 20 did; both are
medians. Memory is that of this process, and of Java after a collection.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
PIPELINES = ("by_minute", "by_hour")
EARLY, AROUND = 70, 10


def main() -> int:
    """Run the batches, tell the figures, and fail when they are not those that ADR 30 promises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", default="5000,200000")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--only", choices=PIPELINES, help="leave the other one out")
    parser.add_argument("--out", type=Path, default=Path("build/bench_sliding.json"))
    given = parser.parse_args()
    from bench.suite import bench_session

    found = {}
    for keys in map(int, given.keys.split(",")):
        with tempfile.TemporaryDirectory(prefix="tidemill-sliding-") as folder, bench_session() as spark:
            found[str(keys)] = measured(spark, Path(folder), keys, given.batches, only=given.only)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps({k: {n: v for n, v in f.items() if n != "seconds"} for k, f in found.items()}, indent=2))
    return 0 if all(f.get("ratio", 0) <= 1.5 and f.get("late_to_early", 0) <= 1.1 for f in found.values()) else 1


def measured(spark: Any, folder: Path, keys: int, batches: int, *, only: str | None) -> dict[str, Any]:
    """Seconds of the batches of both pipelines, and the memory at some of them."""
    from bench.feed import Feed
    from tidemill.batch import run_batch
    from tidemill.claiming import Request
    from tidemill.core.planning import ReadLimit
    from tidemill.ledger.process import this_process
    from tidemill.project import Project
    from tidemill.settings import Settings

    feed = Feed(folder / "log", Minutes(keys, times=max(20_000 // keys, 1)))  # type: ignore[arg-type]
    own = {"pipelines": str(HERE / "sliding" / "pipelines"), "contracts": str(HERE / "sliding" / "data_contracts")}
    project = Project(HERE, Settings(lake=str(folder / "lake"), log=str(folder / "log"), jars="", **own))
    names = [only] if only else list(PIPELINES)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    memory = {}
    for number in range(1, batches + 1):
        feed.deliver()
        for name in names if number % 2 else reversed(names):
            begin = time.perf_counter()
            request = Request(executor=this_process(None), clock=datetime.now(UTC), limit=ReadLimit(None))
            run_batch(project, name, request, session=lambda: spark)
            seconds[name].append(time.perf_counter() - begin)
        if number in (EARLY, batches):
            memory[str(number)] = used(spark)
        if number % 10 == 0:
            last = "  ".join(f"{name} {median(s[-10:]):.2f} s" for name, s in seconds.items())
            print(f"{keys:,} keys, batch {number}: {last}  {used(spark)}", flush=True)
    return {"batches": batches, **compared(seconds), "memory": memory, "seconds": rounded(seconds)}


def compared(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """The figures that are promised, where the run is long enough for them.

    `ratio` is sliding to tumbling at the end; `late_to_early` that of sliding.
    """
    if any(len(s) <= EARLY for s in seconds.values()):
        return {}
    early = {name: round(median(s[EARLY - AROUND - 1 : EARLY + AROUND]), 3) for name, s in seconds.items()}
    late = {name: round(median(s[-2 * AROUND :]), 3) for name, s in seconds.items()}
    found: dict[str, Any] = {"early_s": early, "late_s": late}
    if len(seconds) == len(PIPELINES):
        tumbling, sliding = PIPELINES
        drift = late[tumbling] / early[tumbling]
        found |= {
            "ratio": round(late[sliding] / late[tumbling], 3),
            "late_to_early": round(late[sliding] / early[sliding], 3),
            "tumbling_late_to_early": round(drift, 3),
        }
    return found


def rounded(seconds: dict[str, list[float]]) -> dict[str, list[float]]:
    """Every batch, so that peaks can be seen."""
    return {name: [round(s, 3) for s in values] for name, values in seconds.items()}


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
    sys.path[0] = str(Path(__file__).parents[1])
    sys.exit(main())
