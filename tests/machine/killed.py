"""Somebody who goes back or decides, in a process of its own: `python -m machine.killed FOLDER KIND`."""

from __future__ import annotations

import sys
from pathlib import Path

from machine.decisions import DECISIONS
from machine.test_crashes_of_amendments import done
from machine.tiny import TinyAttempt
from support.projects import NO_SPARK, Mill
from tidemill.project.project import Project
from tidemill.run import batch

if __name__ == "__main__":
    folder, kind = sys.argv[1:]
    batch.Attempt = TinyAttempt  # type: ignore[misc]
    mill = Mill(Project.load(Path(folder)), NO_SPARK, "sums")
    if kind in DECISIONS:
        DECISIONS[kind].typed(mill)
    else:
        done(mill, kind)
