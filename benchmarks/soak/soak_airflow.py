"""Runs `tidemill up` with a batch every minute, kills parts of it at random moments, and proves what is left.

It works in a folder of its own and ends with the figures: records lost and doubled, rows that differ, processes left.
At 200 records a second, pages have more than 500 visitors a minute; then `visitors`, which is counted approximately,
depends on how batches cut the log, and such rows count as different.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random

from running import Up, processes_in, say, up

from tidemill.core.errors import TidemillError
from tidemill.core.protocol.account import Account
from tidemill.core.protocol.events import Committed
from tidemill.demo.proof import Proof, prove
from tidemill.demo.site import PIPELINE, TOPIC, make_site, source_of
from tidemill.ledger.process import is_gone
from tidemill.project.project import Project
from tidemill.run.sessions import project_session
from tidemill_airflow.local.processes import send

ROOT = Path(__file__).parents[2]
VICTIMS = ("scheduler", "task", "connect")
_FIRST, _LAST = 60.0, 90.0
"""Seconds without a kill: until a first batch, and before the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """How long, how many kills, and where."""

    minutes: float
    kills: int
    seed: int
    rate: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it. `longest_gap_s` is the longest time between two commits."""

    minutes: float
    ready_s: float
    kills: Sequence[str]
    batches: int
    appended: int
    longest_gap_s: float
    lost: int
    doubled: int
    different: int
    rows: int
    processes_left: int
    examples: Sequence[str] = field(default_factory=tuple)

    @property
    def is_proven(self) -> bool:
        """Whether nothing was lost, doubled, changed or left."""
        return not (self.lost or self.doubled or self.different or self.processes_left) and self.rows > 0


def soak(what: Soak) -> Outcome:
    """Do it.

    Raises:
        EngineError: `tidemill up` did not get ready, or ended by itself.
    """
    project = make_site(what.folder, source_of(str(ROOT)))
    with up(what.folder, ["--generator", "--rate", str(what.rate)]) as running:
        say(f"ready after {running.ready_s:.0f} s")
        killed = _minutes(what, project, running)
        say("stopping")
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(120)
    left = processes_in(what.folder)
    say(f"{len(left)} processes left")
    _run_to_the_end(project)
    commits = [e.event for e in project.ledger(PIPELINE).entries() if isinstance(e.event, Committed)]
    appended = sum(b.until_offset - b.from_offset for b in project.log().bounds(TOPIC).values())
    proof = _prove(project, commits, appended)
    times = [e.recorded_at for e in project.ledger(PIPELINE).entries() if isinstance(e.event, Committed)][:-1]
    gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
    return Outcome(
        minutes=what.minutes,
        ready_s=round(running.ready_s, 1),
        kills=killed,
        batches=len(commits),
        appended=appended,
        longest_gap_s=round(max(gaps, default=0.0), 1),
        lost=proof.lost,
        doubled=proof.doubled,
        different=proof.different,
        rows=proof.rows,
        processes_left=len(left),
        examples=proof.examples,
    )


def _minutes(what: Soak, project: Project, running: Up) -> list[str]:
    """Let it run, and kill at random moments. Returns what was killed, in words."""
    random, begin, length = Random(what.seed), time.monotonic(), what.minutes * 60
    moments = sorted(random.uniform(_FIRST, max(length - _LAST, _FIRST + 1)) for _ in range(what.kills))
    victims = [VICTIMS[(number + what.seed) % len(VICTIMS)] for number in range(what.kills)]
    killed = []
    while (now := time.monotonic() - begin) < length:
        running.check()
        if moments and now >= moments[0] and _kill(running, project, victims[0]):
            killed.append(f"{victims[0]} after {now:.0f} s")
            say(f"killed {killed[-1]}")
            del moments[0], victims[0]
        time.sleep(0.05)
    return killed


def _kill(running: Up, project: Project, victim: str) -> bool:
    """Kill a part at once, or the task that executes a batch as soon as there is one. False if there is none yet."""
    if victim != "task":
        found = running.state()
        if found is None or victim not in found.parts:
            return False
        send(found.parts[victim], signal.SIGKILL)
        return True
    batch = project.ledger(PIPELINE).view().open_batch
    if batch is None or is_gone(batch.executor):
        return False
    os.kill(batch.executor.pid, signal.SIGKILL)
    return True


def _run_to_the_end(project: Project) -> None:
    """Commit what is left in the log, and close all windows."""
    words = ["--project", str(project.folder), "run", PIPELINE, "--until-caught-up", "--drain"]
    subprocess.run([sys.executable, "-m", "tidemill.cli.main", *words], check=True)


def _prove(project: Project, commits: Sequence[Committed], appended: int) -> Proof:
    session = project_session(project)
    try:
        account = sum((a for commit in commits for a in commit.accounts.values()), Account())
        return prove(project, session, account, appended)
    finally:
        session.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, print the figures and keep them."""
    parser = argparse.ArgumentParser(prog="soak_airflow.py", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="how long batches run (60)")
    parser.add_argument("--kills", type=int, default=3, help="how many kills (3)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments, and of who is killed first")
    parser.add_argument("--rate", type=int, default=50, help="records a second (50)")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "soak", help="emptied each time")
    given = parser.parse_args(arguments)
    what = Soak(
        minutes=given.minutes, kills=given.kills, seed=given.seed, rate=given.rate, folder=given.folder.resolve()
    )
    try:
        found = soak(what)
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    figures: Mapping[str, object] = asdict(found)
    (ROOT / "build" / "soak_airflow.json").write_text(json.dumps(figures, indent=2) + "\n")
    print(json.dumps(figures, indent=2))
    return 0 if found.is_proven else 1


if __name__ == "__main__":
    sys.exit(main())
