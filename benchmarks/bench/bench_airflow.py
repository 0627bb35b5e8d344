"""Measures batches that Airflow starts, on Connect and in local sessions: seconds from the scheduled moment to commit.

Each run finds the same number of records, which are appended when the run before has committed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles

sys.path.append(str(Path(__file__).parents[1] / "soak"))

import pyarrow as pa
from running import Up, say, up

from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.protocol.events import Committed, Planned
from tidemill.demo.feed import open_topic
from tidemill.demo.site import PIPELINE, make_site, source_of
from tidemill.demo.traffic import Traffic, lines
from tidemill.project.project import Project

ROOT = Path(__file__).parents[2]
WARM_UP = 2
"""Runs that are not counted: a server and its sessions are new then."""

_PATIENCE = 300.0
_WAYS: Mapping[str, Sequence[str]] = {"connect": (), "local": ("--no-connect",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """How many runs of each way, with how many records, how far apart."""

    runs: int
    records: int
    every: int
    folder: Path


def measure(what: Bench, way: str) -> list[float]:
    """The seconds of each run, from its scheduled moment to its commit.

    Raises:
        EngineError: a run does not commit.
    """
    project = _project(what, way)
    with up(project.folder, ["--no-generator", *_WAYS[way]]) as running:
        say(f"{way}: ready after {running.ready_s:.0f} s")
        for number in range(what.runs + WARM_UP):
            _feed(project, what, number)
            _await_commits(project, running, number + 1)
        seconds = list(_seconds(project, running, what.records))
    for each in seconds:
        say(f"{way}: {each:.2f} s")
    return seconds[WARM_UP:]


def _project(what: Bench, way: str) -> Project:
    """The reference pipeline, started every few seconds."""
    site = make_site(what.folder / way, source_of(str(ROOT)))
    text = next(Path(site.settings.pipelines).glob("*.py")).read_text()
    pipelines = site.folder / "pipelines"
    pipelines.mkdir(exist_ok=True)
    (pipelines / f"{PIPELINE}.py").write_text(text.replace('every="1 minute"', f'every="{what.every} seconds"'))
    file = site.folder / "tidemill.toml"
    file.write_text(file.read_text().replace(json.dumps(site.settings.pipelines), '"pipelines"'))
    open_topic(site.log())  # type: ignore[arg-type]
    return Project.load(site.folder)


def _feed(project: Project, what: Bench, number: int) -> None:
    span = timedelta(seconds=what.every)
    traffic = Traffic(seed=number, records=what.records, start=datetime.now(UTC) - span, span=span)
    made = list(lines(traffic))
    keys, values = [line.key for line in made], [line.value for line in made]
    table = pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
    open_topic(project.log()).append(table)  # type: ignore[arg-type]


def _await_commits(project: Project, running: Up, count: int) -> None:
    end = time.monotonic() + _PATIENCE
    while sum(isinstance(e.event, Committed) for e in project.ledger(PIPELINE).entries()) < count:
        running.check()
        if time.monotonic() > end:
            raise EngineError(f"batch {count} was not committed within {_PATIENCE:.0f} s")
        # Looking at the ledger takes time from the batch.
        time.sleep(1)


def _seconds(project: Project, running: Up, records: int) -> Iterator[float]:
    found = running.client().call("GET", f"dags/{PIPELINE}/dagRuns?limit=1000")["dag_runs"]
    due = {run["dag_run_id"]: datetime.fromisoformat(run["run_after"]) for run in found}
    begun: dict[int, datetime] = {}
    for entry in project.ledger(PIPELINE).entries():
        match entry.event:
            case Planned() as planned:
                run = planned.executor.identity.removeprefix(f"airflow:{PIPELINE}/").rpartition("/")[0]
                begun[planned.plan.batch_id] = due[run]
            # A run that came while records were appended, read a part of them.
            case Committed() as committed if sum(a.read for a in committed.accounts.values()) == records:
                yield (entry.recorded_at - begun[committed.batch_id]).total_seconds()
            case _:
                continue


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both ways, print the figures and keep them."""
    parser = argparse.ArgumentParser(prog="bench_airflow.py", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="of each way (20)")
    parser.add_argument("--records", type=int, default=100_000, help="of each run (100,000)")
    parser.add_argument("--every", type=int, default=30, help="seconds between runs (30)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench_airflow", help="emptied each time")
    given = parser.parse_args(arguments)
    what = Bench(runs=given.runs, records=given.records, every=given.every, folder=given.folder.resolve())
    try:
        connect, local = (measure(what, way) for way in _WAYS)
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    figures = {
        "runs": what.runs,
        "records": what.records,
        "connect_p50_s": round(median(connect), 2),
        "connect_p95_s": round(quantiles(connect, n=20, method="inclusive")[-1], 2),
        "local_p50_s": round(median(local), 2),
    }
    (ROOT / "build" / "bench_airflow.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
