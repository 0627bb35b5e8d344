"""Two processes come to the same write of the same batch, wait for each other there, and go on at the same moment."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import ROOT, somebody
from support.recovery import WIDE_WRITES
from tidemill.core.protocol.events import Committed
from tidemill.core.protocol.failpoints import VARIABLE, Injected

pytestmark = pytest.mark.spark

RUNNER = f"""
import json, os, sys
sys.path.insert(0, {str(ROOT / "spark_jobs")!r})
from tidemill.core.errors import TidemillError
from tidemill.project.project import Project
from tidemill.run.loop import Order, run_batches
from tidemill.run.sessions import project_session
session = None
for line in sys.stdin:
    folder, os.environ[{VARIABLE!r}] = json.loads(line)
    project = Project.load(folder)
    session = session or project_session(project)
    try:
        done = list(run_batches(project, "wide", Order(drain=True), identity="one task", session=lambda: session))
        answer = "committed" if done else "nothing to do"
    except TidemillError as error:
        answer = type(error).__name__
    print(json.dumps(answer), flush=True)
"""


class Runner:
    """A process that runs a batch when it is told to."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", RUNNER], stdin=pipe, stdout=pipe, text=True)

    def start(self, folder: Path, failpoint: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(folder), failpoint]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return str(json.loads(self._process.stdout.readline()))

    def wait_for(self, file: Path) -> None:
        end = time.monotonic() + 120
        while not file.exists():
            assert self._process.poll() is None, "the process has ended"
            assert time.monotonic() < end, f"nobody came to {file}"
            time.sleep(0.01)

    def end(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture(scope="module")
def runners(connect: ConnectServer) -> Iterator[tuple[Runner, Runner]]:
    """Clients of one server: two Spark drivers on a plain folder are not safe (see the README)."""
    both = (Runner(), Runner())
    yield both
    for runner in both:
        runner.end()


SHORT = (("published:sums", "delta-rs"),)
WRITES = [*((w, "delta-rs") for w in ("claimed", *WIDE_WRITES)), ("state:sums", "spark"), ("published:sums", "spark")]


@pytest.mark.parametrize(
    ("write", "writer"), [pytest.param(*c, marks=pytest.mark.long if c in SHORT else pytest.mark.crash) for c in WRITES]
)
def test_two_processes_that_meet_at_a_write_commit_once(  # noqa: PLR0917
    tmp_path: Path, wide: Any, whole: Any, connect: ConnectServer, runners: Any, write: str, writer: str
) -> None:
    mill, (first, second) = wide(tmp_path, writer, remote=connect.remote), runners
    go, early, late = (tmp_path / name for name in ("go", "early", "late"))
    if write == "claimed":
        _leave_open(mill)
    first.start(tmp_path, f"before:{write}=pause:{early}")
    second.start(tmp_path, f"before:ledger=pause:{go};before:{write}=pause:{late}")
    first.wait_for(tmp_path / "early.reached")
    go.touch()
    second.wait_for(tmp_path / "late.reached")
    early.touch()
    late.touch()
    answers = [first.answer(), second.answer()]
    if write in {"planned", "claimed"}:
        # Either may win there, and the other one takes over or finds all done.
        assert answers.count("committed") == 1
        assert set(answers) <= {"committed", "Fenced", "nothing to do"}
    else:
        assert answers == ["Fenced", "committed"]
    commits = [e.event for e in mill.project.ledger("wide").entries() if isinstance(e.event, Committed)]
    assert [c.batch_id for c in commits] == [1, 2]
    mill.catch_up()
    assert mill.everything() == whole


def _leave_open(mill: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "planned=raise")
        with pytest.raises(Injected):
            mill.run(drain=True, executor=somebody("one task"))
