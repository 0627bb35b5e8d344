"""The matrix: every part beside every other, with servers that are started for it and end with it.

python benchmarks/matrix/matrix.py [--out build/matrix.json]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from broker import Broker
from spark_servers import Cluster, ConnectServer
from store import ObjectStore

from matrix.cells import PLACES, Cell, Servers, cells_of

HERE = Path(__file__).parent
HEAD = ("log", "storage", "place", "writer", "batches", "rows", "equal", "seconds")


def a_python_without_tidemill(folder: Path) -> str:
    """An environment with the packages of this one, but not with Tidemill: what executors get of it was sent."""
    venv.create(folder, with_pip=False)
    [here] = {path for path in sys.path if path.endswith("site-packages")}
    [there] = folder.glob("lib/python*/site-packages")
    (there / "packages.pth").write_text(f"{here}\n")
    return str(folder / "bin" / "python")


def cluster_settings(master: str, python: str) -> dict[str, Any]:
    """What a project says to use a cluster on this machine, whose workers have this Python."""
    conf = {
        "spark.pyspark.python": python,
        "spark.executor.memory": "512m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
    }
    return {"master": master, "conf": conf}


def started(stack: ExitStack, folder: Path, places: Sequence[str]) -> Servers:
    """Every server that cells in these places need."""
    python = a_python_without_tidemill(folder / "python")
    broker = stack.enter_context(Broker(folder / "kafka"))
    store = stack.enter_context(ObjectStore(folder / "store"))
    store.make_bucket("matrix")
    os.environ.update(store.environ)
    spark: dict[str, dict[str, Any]] = {"here": {"cores": 2}, "local": {"cores": 2}}
    if "connect" in places:
        spark["connect"] = {"remote": stack.enter_context(ConnectServer(folder / "connect", python=python)).remote}
    if "cluster" in places:
        master = stack.enter_context(Cluster(folder / "cluster", python=python)).master
        spark["cluster"] = cluster_settings(master, python)
    return Servers(kafka=broker.servers, s3=store.endpoint, spark=spark)


def results(cells: Sequence[Cell], servers: Servers, folder: Path) -> Iterator[dict[str, Any]]:
    """What came of each cell; the cells of a place share a process and its Spark."""
    for place in PLACES:
        wanted = [cell for cell in cells if cell.place == place]
        if not wanted:
            continue
        home = folder / f"cells-{place}"
        home.mkdir()
        asked = home / "asked.json"
        asked.write_text(json.dumps({"servers": asdict(servers), "cells": [asdict(cell) for cell in wanted]}))
        command = [sys.executable, str(HERE / "cells.py"), str(asked)]
        with (
            (home / "said.log").open("wb") as said,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
        ):
            for line in process.stdout or ():
                if line.startswith("cell "):
                    yield json.loads(line.removeprefix("cell "))
        if process.returncode:
            raise RuntimeError(f"{place} failed: {(home / 'said.log').read_text()[-3000:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each cell as it comes, write the file, and fail unless all are equal."""
    parser = argparse.ArgumentParser(prog="matrix.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/matrix.json"))
    given = parser.parse_args(arguments)
    cells = [cell for place in PLACES for cell in cells_of(place)]
    begin, found = time.monotonic(), []
    print(_line(HEAD))
    with tempfile.TemporaryDirectory(prefix="tidemill-matrix-") as folder, ExitStack() as stack:
        for result in results(cells, started(stack, Path(folder), PLACES), Path(folder)):
            found.append(result)
            result["equal"] = is_equal(result, found[0])
            rows = sum(map(len, result["tables"].values()))
            values = {**result, "batches": len(result["hashes"]), "rows": rows}
            print(_line([values[name] for name in HEAD]), flush=True)
    told = [{name: r[name] for name in HEAD if name in r} for r in found]
    answer = {
        "cells": len(cells),
        "equal": sum(r["equal"] for r in found),
        "seconds": round(time.monotonic() - begin, 1),
        "each": told,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(answer, indent=2) + "\n")
    print(json.dumps({name: answer[name] for name in ("cells", "equal", "seconds")}))
    return 0 if answer["equal"] == answer["cells"] else 1


def is_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same rows, which the raw log gives, by plans with the same logical hashes."""
    same = all(one[name] == other[name] for name in ("tables", "hashes"))
    return bool(same and one["recomputed"] and one["tables"]["sums"])


def _line(values: Sequence[object]) -> str:
    return "  ".join(f"{value!s:<8}" for value in values)
