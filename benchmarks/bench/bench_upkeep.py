"""Whether the last hundred of thousands of batches costs what the second did, with maintenance on the way. By hand:

python benchmarks/bench/bench_upkeep.py [--batches 10000] [--every 500] [--out build/upkeep.json]

A batch of 200 records is a minute of event time, published and committed by the product in a warm session. Beside the
early and the late one a bare Spark job runs, which has no history: where it changed, the machine or the Java process
did. Files are counted over the whole lake; those of the logs of published tables stay for Delta's own thirty days.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

AROUND, EARLY = 25, 150
GROWTH, LEAST = 1.05, 300


def main() -> int:
    """Run the batches, tell the figures, and fail when the last hundred cost over 5 % more than the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("build/upkeep.json"))
    given = parser.parse_args()
    if given.batches < LEAST:
        parser.error(f"--batches: at least {LEAST}, so that there are a second hundred and a last one")
    from bench.suite import bench_session

    with tempfile.TemporaryDirectory(prefix="tidemill-upkeep-") as folder, bench_session() as spark:
        found = measured(spark, Path(folder), given.batches, given.every)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps({k: v for k, v in found.items() if k != "hundreds_s"}, indent=2))
    return 0 if found["ratio"] <= GROWTH else 1


def measured(spark: Any, folder: Path, batches: int, every: int) -> dict[str, Any]:
    """Seconds of batches, and how large the lake was after each maintenance."""
    from bench.baselines import Floor
    from bench.contestant import Arena
    from bench.feed import Feed
    from bench.records import Traffic
    from bench.tidemill_batch import PIPELINE, TidemillBatch
    from bench.workloads import BENCH
    from tidemill.core.plan.amendments import Reason
    from tidemill.maintain import maintenance
    from tidemill.maintain.state_compaction import fold
    from tidemill.repair.job import AmendmentJob

    feed, product, floor = Feed(folder / "log", Traffic(size=200), partitions=1), TidemillBatch(), Floor()
    for each in (product, floor):
        each.prepare(Arena(spark=spark, log=folder / "log", lake=folder / each.name, workload=BENCH))
    # The hour for which files stay for readers is longer than this takes, and nobody else reads.
    maintenance.READERS = timedelta(0)
    reason = Reason(by="the bench")
    amendment = AmendmentJob(project=product.project, pipeline=PIPELINE, reason=reason, session=lambda: spark)
    seconds, bare, sizes, tasks = [], {}, [], []
    for number in range(1, batches + 1):
        delivery = feed.deliver()
        seconds.append(product.round(delivery))
        if min(abs(number - EARLY), batches - AROUND - number) <= AROUND:
            bare[number] = floor.round(delivery)
        if number % every == 0:
            begin = time.perf_counter()
            folds = len(list(fold(amendment)))
            done = list(maintenance.maintain(product.project, PIPELINE, keep=timedelta(0), now=datetime.now(UTC)))
            tasks.append(round(time.perf_counter() - begin, 2))
            sizes.append(
                {"batch": number, **size(folder / product.name), "folds": folds, "removed": sum(c.count for c in done)}
            )
            print(f"batch {number}: {median(seconds[-100:]):.3f} s, {sizes[-1]}", flush=True)
    early, late = seconds[100:200], seconds[-100:]
    return {
        "batches": batches,
        "early_s": round(median(early), 3),
        "late_s": round(median(late), 3),
        "ratio": round(median(late) / median(early), 3),
        "bare_early_s": round(median(s for n, s in bare.items() if abs(n - EARLY) <= AROUND), 3),
        "bare_late_s": round(median(s for n, s in bare.items() if abs(n - EARLY) > AROUND), 3),
        "maintenance_s": tasks,
        "sizes": sizes,
        "hundreds_s": [round(median(seconds[n : n + 100]), 3) for n in range(0, batches, 100)],
    }


def size(lake: Path) -> dict[str, int]:
    """Files and bytes of a lake, and of the ledger in it."""
    files = [f for f in lake.rglob("*") if f.is_file()]
    ledger = [f for f in files if "ledger" in f.parts]
    logs = [f for f in files if "_delta_log" in f.parts and "published" in f.parts]
    return {
        "files": len(files),
        "bytes": sum(f.stat().st_size for f in files),
        "published_log_files": len(logs),
        "ledger_files": len(ledger),
        "ledger_bytes": sum(f.stat().st_size for f in ledger),
    }


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
