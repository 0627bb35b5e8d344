"""How long each page takes over a ledger of ten thousand batches.

    python benchmarks/bench/bench_pages.py [--batches 10000] [--out build/bench_pages.json]

The pages are asked without Airflow, by somebody who may see everything, right after they were made as the API server
makes them. Whoever opens the first page reads it for a moment; by then what was begun with it is prepared. A route's
first answer also reads what is kept afterwards. It has the same limit as the later ones, whose median is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

LIMIT = 0.3
"""Seconds that a page may take."""

ROUNDS = 9


def main() -> int:
    """Measure, print and write down. 1 if a page takes longer than the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("build/bench_pages.json"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), given.batches)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps({"batches": given.batches, "limit_s": LIMIT, "routes": found}, indent=2) + "\n")
    for route, seconds in found.items():
        print(f"{seconds['median_s'] * 1000:7.0f} ms  (first {seconds['first_s'] * 1000:5.0f} ms)  {route}")
    return int(any(taken > LIMIT for seconds in found.values() for taken in seconds.values()))


def measured(folder: Path, batches: int) -> dict[str, dict[str, float]]:
    """Seconds of each route: its first answer, and the median of later ones."""
    from starlette.testclient import TestClient

    from bench.bench_history import long_lived
    from pages.people import People
    from tidemill_airflow.pages.app import pages_app, prepare
    from tidemill_airflow.pages.projects import Projects

    mill, day, window = long_lived(folder, batches * 3)
    ledger = mill.project.ledger(mill.name)
    ledger.index_old()
    ledger.keep_short(keep=200)
    app = pages_app(People(default="user"), Projects(lambda: [str(mill.project.folder)]))
    preparing = Thread(target=prepare, args=(app,), daemon=True)
    preparing.start()
    client = TestClient(app)
    of = f"/pipelines/{mill.name}"
    asked = (
        "/",
        of,
        f"{of}/timeline.json",
        f"{of}/batches/{batches // 2}",
        f"{of}/records/quarantine",
        f"{of}/windows/sums?start={window:%Y-%m-%dT%H:%M:%S}",
        f"{of}/number?window={window:%Y-%m-%dT%H:%M:%S}&key.user=a",
        f"{of}/backfill?from_time={day:%Y-%m-%dT%H:%M:%S}",
        f"/dags/{mill.name}/runs/scheduled__{window:%Y-%m-%dT%H:%M:%S}+00:00",
    )
    found = {asked[0]: timed(client, asked[0])}
    preparing.join()
    return found | {route: timed(client, route) for route in asked[1:]}


def timed(client: Any, route: str) -> dict[str, float]:
    """Seconds of a route."""
    taken = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        answer = client.get(route)
        taken.append(time.perf_counter() - begin)
        assert answer.status_code == 200, (route, answer.status_code, answer.text[-2000:])
    return {"first_s": round(taken[0], 4), "median_s": round(median(taken[1:]), 4)}


if __name__ == "__main__":
    # The folder of a script stands first on the path, and this file would hide the package it is part of.
    sys.path[:1] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "tests")]
    sys.exit(main())
