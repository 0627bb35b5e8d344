"""What more workers bring: a batch of 10,000,000 records on a standalone cluster of two workers, and on one of four.

python benchmarks/bench/bench_cluster.py [--records 10000000] [--workers 2,4] [--out build/bench_cluster.json]

Each worker has one core. On a machine with fewer cores than that, workers share them, and `seconds` say little. Then
`busiest_s` decides: the CPU seconds of the worker that had the most to do (its executor and its Python), which a batch
takes at least where each worker has a core of its own. `driver_s` are those of the process of the batch and its Java.
`scales` is how many times smaller `busiest_s` is with the last number of workers than with the first. All are medians
of three batches. One number of workers is measured without an aim.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

AIM = 1.6
"""What four workers are to be better than two."""

_COUNTED = 3

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Measure, write and print; fails if the last number of workers is not so much better than the first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[2, 4])
    parser.add_argument("--out", type=Path, default=Path("build/bench_cluster.json"))
    given = parser.parse_args()
    found = [measured(workers, given.records) for workers in given.workers]
    scales = round(found[0]["busiest_s"] / found[-1]["busiest_s"], 2)
    told = {"records": given.records, "cores": os.cpu_count(), "clusters": found, "scales": scales, "aim": AIM}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(told, indent=2) + "\n")
    print(json.dumps(told, indent=2))
    return 0 if len(found) == 1 or scales >= AIM else 1


def measured(workers: int, records: int) -> dict[str, Any]:
    """Medians of batches on a new cluster, without the first one, which starts executors, Python and compilers."""
    from spark_servers import Cluster

    from tidemill.engine.spark.jars import jar_folder, jar_paths, locked_jars
    from tidemill.engine.spark.session import ClusterSpark, open_session

    jars = jar_paths(jar_folder(_ROOT, os.environ), locked_jars())
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-cluster-") as folder,
        Cluster(Path(folder) / "cluster", workers=workers) as cluster,
    ):
        place = ClusterSpark(master=cluster.master, jars=jars, conf={"spark.driver.host": "127.0.0.1"})
        spark = open_session(place, name="tidemill-bench-cluster")
        try:
            return {"workers": workers, **_batches(spark, Path(folder), records, cluster.groups)}
        finally:
            spark.stop()


def _batches(spark: Any, folder: Path, records: int, servers: Sequence[int]) -> dict[str, Any]:
    """Their seconds, and the CPU seconds of this process and of the servers: the master, and then the workers."""
    from bench.contestant import Arena
    from bench.feed import Feed, partitions_for
    from bench.machine import cpu_seconds
    from bench.records import Traffic
    from bench.tidemill_batch import TABLE, TidemillBatch
    from bench.workloads import BENCH

    feed = Feed(folder / "log", Traffic(size=records), partitions=partitions_for(records))
    product = TidemillBatch(driver_records=0)
    product.prepare(Arena(spark=spark, log=folder / "log", lake=folder / "lake", workload=BENCH))
    product.round(feed.deliver())
    found, watched = [], (os.getpid(), *servers)
    for _ in range(_COUNTED):
        delivery = feed.deliver()
        before = [cpu_seconds(pid) or 0.0 for pid in watched]
        seconds = product.round(delivery)
        # The servers of the cluster are below this process as well.
        whole, master, *each = ((cpu_seconds(pid) or 0.0) - spent for pid, spent in zip(watched, before, strict=True))
        found.append((seconds, max(each), sum(each), whole - master - sum(each)))
    names = ("seconds", "busiest_s", "workers_s", "driver_s")
    medians = {name: round(median(values), 2) for name, values in zip(names, zip(*found, strict=True), strict=True)}
    return {**medians, "rows": product.published(TABLE).count()}


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(_ROOT / "benchmarks"), str(_ROOT / "infra" / "local")]
    sys.exit(main())
