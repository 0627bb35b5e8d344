"""A process killed after any write of a batch, and the batch run again, leaves what an unbroken run leaves."""

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
from support.recovery import WRITES
from tidemill.core.failpoints import VARIABLE

pytestmark = pytest.mark.spark

SHORT = ("state:sums", "published:sums")

KILLED = """
import sys
from datetime import UTC, datetime
from tidemill.batch import run_batch
from tidemill.claiming import Request
from tidemill.ledger.process import this_process
from tidemill.project import Project
request = Request(executor=this_process(), clock=datetime.now(UTC), drain=True)
run_batch(Project.load(sys.argv[1]), "sums", request)
"""


def kill_a_run(folder: Path, write: str) -> None:
    """Run the next batch in a process of its own, which is killed right after a write."""
    environment = {**os.environ, VARIABLE: f"{write}=kill", "PYTHONPATH": str(ROOT / "spark_jobs")}
    command = [sys.executable, "-c", KILLED, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


# Most of such a run is the start of Spark: these are clients of one server; tests/cli kills one with its own Spark.
@pytest.mark.parametrize("write", [w if w in SHORT else pytest.param(w, marks=pytest.mark.long) for w in WRITES])
def test_a_client_killed_after_any_write_leaves_what_an_unbroken_run_leaves(
    tmp_path: Path, begun: Any, unbroken: Any, connect: ConnectServer, write: str
) -> None:
    mill = begun(tmp_path, remote=connect.remote)
    kill_a_run(tmp_path, write)
    mill.catch_up()
    assert mill.everything() == unbroken
