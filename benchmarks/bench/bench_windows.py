"""What each kind of windows costs, held against a bound. Run it by hand:

python benchmarks/bench/bench_windows.py [--only sessions,totals,...] [--scale 1.0] [--out build/bench_windows.json]

sessions   1,000,000 records of 100,000 keys in 10 batches, with a gap of 30 s, whole protocol: at most 1.5 times what
           Spark's own `session_window` takes for all of them in one batch, and 0.5 s for each batch
totals     batches of 10,000 records over 1,000,000 keys of state, without a window: after the first, at most 1.5 s each
interval   the same totals three minutes after a key had a record, batches of a minute that fire 10,000 keys: at most
           3 s each
sliding    an hour by a minute, batches of a minute with 5,000 keys, after 90 of them: at most 1.3 times tumbling
counts     1,000,000 records of 50,000 keys, a firing for each 100 of a key, in one batch and in ten: 10 s
aged       the same window with 5,000 keys, batches of a minute, after 180 of them: at most 1.25 times the first ones
tumbling   a batch of 100,000 with windows of ten seconds: at most 1 / 3.5 of what Structured Streaming takes, as before
           there were other windows
many       1,000,000 records in one batch, an hour by a minute: at most 1.3 times tumbling

A first batch of a small topic warms Spark before each. `--scale` makes all of it smaller, to try it out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
BATCHES = 10


@dataclass(frozen=True)
class Row:
    """A figure and its bound, in seconds."""

    what: str
    seconds: float
    bound: float
    met: bool

    @staticmethod
    def of(what: str, seconds: float, bound: float) -> Row:
        """A figure, rounded to milliseconds."""
        return Row(what, round(seconds, 3), round(bound, 3), seconds <= bound)


def main() -> int:
    """Measure, write and print; fails when a bound is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(MEASURES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=Path("build/bench_windows.json"))
    given = parser.parse_args()
    from bench.suite import bench_session

    rows: list[Row] = []
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory(prefix="tidemill-windows-") as folder, bench_session() as spark:
            for row in MEASURES[name](spark, Path(folder), given.scale):
                rows.append(row)
                print(json.dumps(asdict(row)), flush=True)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"scale": given.scale, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")
    return 0 if all(row.met for row in rows) else 1


@dataclass(frozen=True)
class Requests:
    """Records of so many keys, drawn at random or each once, in batches that cover a minute of event time."""

    size: int
    keys: int
    each_once: bool = False

    def batch(self, index: int) -> Any:
        """The records of one batch: binary columns `key` and `value`."""
        import numpy as np
        import polars as pl

        from bench.records import START, _as_json, _user

        rng = np.random.default_rng((index, self.keys, self.size))
        users = np.arange(self.size) % self.keys if self.each_once else rng.integers(0, self.keys, self.size)
        begin = int(START.timestamp()) * 1000 + index * 60_000
        columns = pl.DataFrame(
            {
                "ts": pl.Series("ts", begin + np.arange(self.size, dtype=np.int64) * 60_000 // self.size).cast(
                    pl.Datetime("ms")
                ),
                "user": users,
                "page": rng.integers(0, 1_000, self.size),
                "status": np.full(self.size, 200),
                "bytes": rng.integers(200, 100_000, self.size),
                "ms": rng.integers(1, 500, self.size),
            }
        )
        key, value = _user().cast(pl.Binary).alias("key"), _as_json().cast(pl.Binary).alias("value")
        return columns.select(key, value).to_arrow(compat_level=pl.CompatLevel.oldest())


class Mill:
    """A topic, a lake, and batches of a pipeline over it."""

    def __init__(self, spark: Any, folder: Path, traffic: Any) -> None:
        from bench.feed import Feed
        from tidemill.project.project import Project
        from tidemill.project.settings import Settings

        self._spark, self.feed = spark, Feed(folder / "log", traffic)
        own = {"pipelines": str(HERE / "windows" / "pipelines"), "contracts": str(HERE / "windows" / "data_contracts")}
        self._project = Project(HERE, Settings(lake=str(folder / "lake"), log=str(folder / "log"), jars="", **own))

    def seconds(self, pipeline: str, clock: datetime | None = None) -> float:
        """How long the next batch takes."""
        from tidemill.core.plan.planning import ReadLimit
        from tidemill.ledger.process import this_process
        from tidemill.run.batch import run_batch
        from tidemill.run.claiming import Request

        request = Request(executor=this_process(None), clock=clock or datetime.now(UTC), limit=ReadLimit(None))
        begin = time.perf_counter()
        run_batch(self._project, pipeline, request, session=lambda: self._spark)
        return time.perf_counter() - begin


def _warm(spark: Any, folder: Path, *pipelines: str) -> None:
    mill = Mill(spark, folder / "warm", Requests(1_000, 100))
    for _ in range(3):
        mill.feed.deliver()
        for pipeline in pipelines:
            mill.seconds(pipeline)


def sessions(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """Sessions in ten batches beside one batch of Spark's own."""
    _warm(spark, folder, "visits")
    mill = Mill(spark, folder, Requests(int(100_000 * scale), max(int(100_000 * scale), 1)))
    spent, files = 0.0, list[str]()
    for _ in range(BATCHES):
        files += mill.feed.deliver().files
        spent += mill.seconds("visits")
    alone = min(_of_spark(spark, files) for _ in range(2))
    yield Row.of("sessions, 1,000,000 records of 100,000 keys in 10 batches", spent, 1.5 * alone + 0.5 * BATCHES)


def _of_spark(spark: Any, files: list[str]) -> float:
    from pyspark.sql import functions as F

    from bench.workload import LOG_SCHEMA
    from bench.workloads import requests

    begin = time.perf_counter()
    rows = requests(spark.read.schema(LOG_SCHEMA).parquet(*files))
    grouped = rows.groupBy(F.session_window("ts", "30 seconds"), "user")
    grouped.agg(F.count("*"), F.sum("bytes")).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begin


def totals(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """Batches that touch few of many keys."""
    keys, size = int(1_000_000 * scale), int(10_000 * scale)
    _warm(spark, folder, "totals")
    mill = Mill(spark, folder, _Growing(Requests(keys, keys, each_once=True), Requests(size, keys)))
    mill.feed.deliver()
    first = mill.seconds("totals")
    later = []
    for _ in range(6):
        mill.feed.deliver()
        later.append(mill.seconds("totals"))
    print(f"  the first batch, which makes the state: {first:.2f} s", flush=True)
    print(f"  the first batch after it: {later[0]:.2f} s", flush=True)
    yield Row.of("totals, 10,000 records over 1,000,000 keys of state, slowest of the next five", max(later[1:]), 1.5)


def interval(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """Batches that touch few of many keys, and fire those that they touched minutes ago."""
    keys, size, clock = int(1_000_000 * scale), int(10_000 * scale), datetime.now(UTC)
    _warm(spark, folder, "at_interval")
    mill = Mill(spark, folder, _Growing(Requests(keys, keys, each_once=True), Requests(size, keys)))
    seconds = list[float]()
    for minute in range(12):
        mill.feed.deliver()
        seconds.append(mill.seconds("at_interval", clock + timedelta(minutes=minute)))
    print(f"  the first batch: {seconds[0]:.2f} s; the one that fires all keys: {seconds[3]:.2f} s", flush=True)
    what = "totals at an interval, 10,000 records over 1,000,000 keys of state, slowest of the last six batches"
    yield Row.of(what, max(seconds[6:]), 3.0)


@dataclass(frozen=True)
class _Growing:
    """One batch of the first traffic, then batches of the second."""

    first: Requests
    later: Requests

    def batch(self, index: int) -> Any:
        """The records of one batch."""
        return (self.later if index else self.first).batch(index)


def sliding(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """A window of an hour every minute, when all of its panes are there."""
    _warm(spark, folder, "by_minute", "by_hour")
    keys = int(5_000 * scale)
    mill = Mill(spark, folder, Requests(4 * keys, keys, each_once=True))
    tumbling, by_hour = [], []
    for number in range(90 + 20 if scale == 1 else 12):
        mill.feed.deliver()
        for name, into in (("by_minute", tumbling), ("by_hour", by_hour))[:: 1 if number % 2 else -1]:
            into.append(mill.seconds(name))
    bound = 1.3 * median(tumbling[-20:])
    yield Row.of(
        "sliding 1 h by 1 min, a batch of a minute, after 90 of them, 5,000 keys", median(by_hour[-20:]), bound
    )


def counts(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """Buffers that fill across batches."""
    _warm(spark, folder, "hundreds")
    for batches in (1, BATCHES):
        size, keys = int(1_000_000 * scale) // batches, int(50_000 * scale)
        mill, spent = Mill(spark, folder / str(batches), Requests(size, keys)), 0.0
        for _ in range(batches):
            mill.feed.deliver()
            spent += mill.seconds("hundreds")
        yield Row.of(f"count window (100), 1,000,000 records of 50,000 keys, batches: {batches}", spent, 10.0)


def aged(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """Buffers whose state has seen many batches."""
    _warm(spark, folder, "hundreds")
    keys, seconds = int(5_000 * scale), list[float]()
    mill = Mill(spark, folder, Requests(4 * keys, keys, each_once=True))
    for _ in range(200 if scale == 1 else 30):
        mill.feed.deliver()
        seconds.append(mill.seconds("hundreds"))
    what = "count window (100), a batch of a minute, after 180 of them, 5,000 keys"
    yield Row.of(what, median(seconds[-20:]), 1.25 * median(seconds[5:25]))


def tumbling(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """The windows that were there before all others, beside Structured Streaming."""
    from bench.baselines import PLAIN, AvailableNow, StateStore
    from bench.series import Course, Plan
    from bench.tidemill_batch import TidemillBatch

    never, rivals = time.monotonic() + 3_600, [AvailableNow(store, PLAIN) for store in StateStore]
    course = Course(spark, folder, lambda _: None, never, never)
    series = course.run(Plan(size=int(100_000 * scale), warm=2, counted=5), [*rivals, TidemillBatch()])
    medians = {name: median(seconds) for name, seconds in series.seconds.items()}
    ours = medians.pop(TidemillBatch.name)
    what = "tumbling 10 s, a batch of 100,000; bound: the faster Structured Streaming / 3.5"
    yield Row.of(what, ours, min(medians.values()) / 3.5)


def many(spark: Any, folder: Path, scale: float) -> Iterator[Row]:
    """A million records at once."""
    _warm(spark, folder, "by_minute", "by_hour")
    found: dict[str, list[float]] = {"by_minute": [], "by_hour": []}
    for number in range(3):
        mill = Mill(spark, folder / str(number), Requests(int(1_000_000 * scale), 5_000))
        mill.feed.deliver()
        for name, into in found.items():
            into.append(mill.seconds(name))
    bound = 1.3 * median(found["by_minute"])
    yield Row.of("sliding 1 h by 1 min, 1,000,000 records in one batch", median(found["by_hour"]), bound)


MEASURES: dict[str, Callable[[Any, Path, float], Iterator[Row]]] = {
    "sessions": sessions,
    "totals": totals,
    "interval": interval,
    "sliding": sliding,
    "counts": counts,
    "aged": aged,
    "tumbling": tumbling,
    "many": many,
}


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
