"""A process killed at any boundary of a batch, once or again on its retry, leaves what an unbroken run leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import ROOT
from support.recovery import WIDE_READS, WIDE_WRITES
from tidemill.core.protocol.failpoints import VARIABLE

pytestmark = pytest.mark.spark

KILLED = """
import sys
from tidemill.project.project import Project
from tidemill.run.loop import Order, run_batches
list(run_batches(Project.load(sys.argv[1]), "wide", Order(drain=True)))
"""
ONCE = [(f"{side}:{name}", 0) for name in (*WIDE_READS, *WIDE_WRITES) for side in ("before", "after")]
TWICE = [(f"after:{name}", 1) for name in WIDE_WRITES]
SHORT = (("after:published:sums", 0),)


def be_killed(folder: Path, place: str, again: int) -> None:
    """A process that runs `wide` of this project is killed at a place, and so is each that tries again."""
    environment = {**os.environ, VARIABLE: f"{place}=kill", "PYTHONPATH": str(ROOT / "spark_jobs")}
    command = [sys.executable, "-c", KILLED, str(folder)]
    for number in range(1 + again):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
        # A retry does not come to every step.
        assert done.returncode == -signal.SIGKILL or (number and done.returncode == 0), done.stderr[-3000:]


# Most of such a run is the start of Spark: these are clients of one server; tests/cli kills one with its own Spark.
@pytest.mark.parametrize(
    ("place", "again"), [c if c in SHORT else pytest.param(*c, marks=pytest.mark.crash) for c in (*ONCE, *TWICE)]
)
def test_a_process_that_is_killed_changes_nothing_in_the_end(  # noqa: PLR0917
    tmp_path: Path, wide: Any, whole: Any, connect: ConnectServer, place: str, again: int
) -> None:
    mill = wide(tmp_path, remote=connect.remote)
    be_killed(tmp_path, place, again)
    mill.catch_up()
    assert mill.everything() == whole
