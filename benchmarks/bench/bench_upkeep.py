"""Whether the last hundred of thousands of batches costs what the second did, with maintenance on the way. By hand:

python benchmarks/bench/bench_upkeep.py [--batches 10000] [--every 500] [--out build/upkeep.json]

A batch of 200 records is a minute of event time, published and committed by the product in a warm session. The speed
of the machine changes during the run by more than 5 %. So a second, new lake takes its batches 1 to 200 in turn with
the last 200 of the first lake. `ratio` compares the last hundred of both. `ratio_over_time` compares the last hundred
of the first lake with its second: whatever grew in the process is only in this one. Beside the early and the late
hundred a bare Spark job runs, which has no history. Files are counted over the whole lake; those of the logs of
published tables stay for Delta's own thirty days.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

AROUND, EARLY = 25, 150
GROWTH, LEAST = 1.05, 400


def main() -> int:
    """Run the batches, tell the figures, and fail when the last hundred cost over 5 % more than those of a new lake."""
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
    print(json.dumps({k: v for k, v in found.items() if k not in {"hundreds_s", "sizes"}}, indent=2))
    return 0 if found["ratio"] <= GROWTH else 1


class Life:
    """A lake with its log, batch after batch, and with maintenance."""

    def __init__(self, spark: Any, folder: Path) -> None:
        from bench.contestant import Arena
        from bench.feed import Feed
        from bench.records import Traffic
        from bench.tidemill_batch import PIPELINE, TidemillBatch
        from bench.workloads import BENCH
        from tidemill.core.plan.amendments import Reason
        from tidemill.repair.job import AmendmentJob

        self.feed, self.product = Feed(folder / "log", Traffic(size=200), partitions=1), TidemillBatch()
        self.lake, self.seconds = folder / "lake", list[float]()
        self.arena = Arena(spark=spark, log=folder / "log", lake=self.lake, workload=BENCH)
        self.product.prepare(self.arena)
        reason = Reason(by="the bench")
        project = self.product.project
        self.amendment = AmendmentJob(project=project, pipeline=PIPELINE, reason=reason, session=lambda: spark)

    def live(self) -> Any:
        """Take one more batch; what was delivered for it."""
        delivery = self.feed.deliver()
        self.seconds.append(self.product.round(delivery))
        return delivery

    def maintain(self) -> dict[str, Any]:
        """The seconds that folds and maintenance took, how many files they removed, and how large the lake is now."""
        from tidemill.maintain import maintenance
        from tidemill.maintain.state_compaction import fold

        # The hour for which files stay for readers is longer than this takes, and nobody else reads.
        maintenance.READERS, begin = timedelta(0), time.perf_counter()
        folds = len(list(fold(self.amendment)))
        project, now = self.product.project, datetime.now(UTC)
        done = list(maintenance.maintain(project, self.product.pipeline, keep=timedelta(0), now=now))
        took = round(time.perf_counter() - begin, 2)
        return {"seconds": took, "folds": folds, "removed": sum(c.count for c in done), **size(self.lake)}


def measured(spark: Any, folder: Path, batches: int, every: int) -> dict[str, Any]:
    """Seconds of batches of both lakes, and how large the first was after each maintenance."""
    from bench.baselines import Floor

    old, young, floor = Life(spark, folder / "old"), Life(spark, folder / "young"), Floor()
    floor.prepare(replace(old.arena, lake=folder / floor.name))
    bare, sizes = {}, []
    for number in range(1, batches + 1):
        in_turn = [old, young] if number > batches - 200 else [old]
        for life in reversed(in_turn) if number % 2 else in_turn:
            delivery = life.live()
        if min(abs(number - EARLY), batches - AROUND - number) <= AROUND:
            bare[number] = floor.round(delivery)
        if number % every == 0:
            sizes.append({"batch": number, **old.maintain()})
            print(f"batch {number}: {median(old.seconds[-100:]):.3f} s, {sizes[-1]}", flush=True)
    return {"batches": batches, **_figures(old.seconds, young.seconds, bare), "sizes": sizes}


def _figures(old: list[float], young: list[float], bare: dict[int, float]) -> dict[str, Any]:
    early, late, beside = (median(some) for some in (old[100:200], old[-100:], young[100:]))
    return {
        "early_s": round(early, 4),
        "late_s": round(late, 4),
        "young_s": round(beside, 4),
        "ratio": round(late / beside, 3),
        "ratio_over_time": round(late / early, 3),
        "bare_early_s": round(median(s for n, s in bare.items() if abs(n - EARLY) <= AROUND), 3),
        "bare_late_s": round(median(s for n, s in bare.items() if abs(n - EARLY) > AROUND), 3),
        "hundreds_s": [round(median(old[n : n + 100]), 3) for n in range(0, len(old), 100)],
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
