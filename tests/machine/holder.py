"""Somebody who runs a batch, in a process of its own: `python -m machine.holder FOLDER SAID`.

Without arguments, a nursery: for each line of its input, `FOLDER SAID FAILPOINT`, it forks such a process, which has
everything loaded. The file SAID then holds what became of the batch.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill
from tidemill.core.errors import Busy, Fenced
from tidemill.core.protocol.failpoints import VARIABLE
from tidemill.project.project import Project
from tidemill.run import batch


def hold(folder: str, said: str) -> None:
    """Run the next batch."""
    batch.Attempt = TinyAttempt  # type: ignore[misc]
    try:
        answer = type(Mill(Project.load(Path(folder)), NO_SPARK, "sums").run()).__name__
    except (Busy, Fenced) as error:
        answer = type(error).__name__
    written = Path(f"{said}.written")
    written.write_text(answer)
    written.rename(said)


def nursery() -> None:
    """Fork until the input ends; tell each child's process number."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        folder, said, failpoint = line.split()
        if not (child := os.fork()):
            os.environ[VARIABLE] = failpoint
            hold(folder, said)
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    hold(*sys.argv[1:]) if len(sys.argv) > 1 else nursery()
