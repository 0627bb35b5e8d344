"""What it costs to repair ten records in a lake of a thousand windows. Run it by hand:

python benchmarks/bench/bench_repair.py [--windows 1000] [--records 10] [--out build/repair.json]

Late records are admitted, then as many rejected ones replayed after their contract was mended, each in one batch in a
warm session. Only the windows they belong to may be written again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TARGET_S = 2.0


def main() -> int:
    """Repair, tell the figures, and fail when it took longer or wrote other windows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=1_000)
    parser.add_argument("--records", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("build/repair.json"))
    given = parser.parse_args()
    from bench.suite import bench_session

    with tempfile.TemporaryDirectory(prefix="tidemill-repair-") as folder, bench_session() as spark:
        found = measured(spark, Path(folder), given.windows, given.records)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    good = all(each["seconds"] < TARGET_S and each["windows"] == given.records for each in found.values())
    return 0 if good else 1


def measured(spark: Any, folder: Path, windows: int, records: int) -> dict[str, dict[str, Any]]:
    """Seconds and windows written, for late records and for rejected ones."""
    from support.projects import Mill, an_event, sums
    from tidemill.core.plan.amendments import Reason, SideOutput
    from tidemill.core.repair.side_outputs import Selection
    from tidemill.project.project import Project
    from tidemill.repair.job import AmendmentJob
    from tidemill.repair.repair import repair

    mill = sums(folder / "mill", spark)
    for start in range(0, windows, windows // 10):
        mill.feed([an_event(10 * n, "abc"[n % 3]) for n in range(start, start + windows // 10)])
        mill.run()
    mill.feed([an_event(10 * windows)])
    mill.run()
    step = windows // records
    mill.feed([an_event(10 * step * n + 1, "abc"[n % 3]) for n in range(records)])
    mill.feed([an_event(10 * step * n + 11, "x", 2_000_000) for n in range(records)])
    mill.run()
    found = {}
    for aside in (SideOutput.LATE, SideOutput.QUARANTINE):
        contract = mill.project.folder / "data_contracts" / "events.odcs.yaml"
        contract.write_text(contract.read_text().replace("maximum: 1000000}", "maximum: 100000000}"))
        amendment = AmendmentJob(
            project=Project.load(mill.project.folder),
            pipeline="sums",
            reason=Reason(by="the bench"),
            session=lambda: spark,
        )
        begin = time.perf_counter()
        commits = list(repair(amendment, aside, Selection()))
        seconds = time.perf_counter() - begin
        found[aside.value] = {
            "records": sum(c.accounts["events"].aggregated for c in commits),
            "seconds": round(seconds, 2),
            "windows": written(Mill(amendment.project, spark, "sums"), commits[-1].batch_id),
        }
    return found


def written(mill: Any, batch_id: int) -> int:
    """How many published windows were written by a batch."""
    from support.projects import rows_of

    rows = rows_of(mill.project.published_uri("sums"))
    return len({r["window_start"] for r in rows if r["batch_id"] == batch_id})


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
