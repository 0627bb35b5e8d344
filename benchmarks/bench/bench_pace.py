"""Whether batches keep up with 47,000 records a second in a topic of Kafka. Run it by hand:

python benchmarks/bench/bench_pace.py [--rate 47000] [--minutes 5] [--every 10] [--out build/pace.json]

A broker of its own, a process that writes, and the product in a warm session, all on this machine.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Tell the figures, and fail when a record was lost or doubled, or batches fell behind by more than one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=47_000)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("build/pace.json"))
    given = parser.parse_args()
    from bench.pace import Pace, measured
    from bench.suite import bench_session

    pace = Pace(rate=given.rate, seconds=int(given.minutes * 60), every=given.every)
    with tempfile.TemporaryDirectory(prefix="tidemill-pace-") as folder, bench_session(kafka=True) as spark:
        found = measured(spark, Path(folder), pace, lambda text: print(text, flush=True))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    return 0 if not found["lost"] and not found["doubled"] and found["behind_s"] <= given.every else 1


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    root = Path(__file__).parents[2]
    sys.path[:1] = [str(root / "benchmarks"), str(root / "tests")]
    sys.path.append(str(root / "infra" / "local"))
    sys.exit(main())
