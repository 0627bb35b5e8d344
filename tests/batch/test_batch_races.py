"""Two processes run one pipeline at the same moment, again and again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.connect import ConnectServer
from support.projects import an_event, sums

pytestmark = pytest.mark.spark

RUNNER = """
import json, sys
from datetime import UTC, datetime
from tidemill.run.batch import run_batch
from tidemill.run.claiming import Request
from tidemill.core.errors import Busy, Fenced
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.run.sessions import project_session
project = Project.load(sys.argv[1])
session = project_session(project)
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        request = Request(executor=this_process(), clock=datetime.now(UTC))
        answer = type(run_batch(project, "sums", request, session=lambda: session)).__name__
    except (Busy, Fenced) as error:
        answer = type(error).__name__
    print(json.dumps(answer), flush=True)
"""


# Clients of one server, so that the machine runs batches and not the start of Spark.
@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=pytest.mark.long)])
def test_two_processes_at_once_take_every_offset_once(
    tmp_path: Path, spark: Any, connect: ConnectServer, rounds: int
) -> None:
    mill = sums(tmp_path, spark, remote=connect.remote, driver_records=0)
    command = [sys.executable, "-c", RUNNER, str(tmp_path)]
    pipe = subprocess.PIPE
    runners = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    answers: Counter[str] = Counter()
    try:
        for runner in runners:
            assert _answer(runner) == "ready"
        for number in range(rounds):
            mill.feed(an_event(10 * number + i) for i in range(5))
            for runner in runners:
                assert runner.stdin is not None
                runner.stdin.write("go\n")
                runner.stdin.flush()
            answers.update(_answer(runner) for runner in runners)
    finally:
        for runner in runners:
            runner.communicate(timeout=60)
    mill.catch_up()
    assert sum(answers.values()) == 2 * rounds
    assert set(answers) <= {"Committed", "Busy", "Fenced", "NothingToDo"}
    assert answers["Busy"] + answers["Fenced"] > 0
    assert [r["n"] for r in mill.published()] == [5] * rounds
    view = mill.project.ledger("sums").view()
    assert view.position.topics["events"].offsets == {0: 5 * rounds}


def _answer(runner: subprocess.Popen[str]) -> str:
    assert runner.stdout is not None
    return str(json.loads(runner.stdout.readline()))
