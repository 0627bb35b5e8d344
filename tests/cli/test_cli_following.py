"""`tidemill run --follow` as a process of its own, and the signals that stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.commands import type_command
from support.projects import NO_SPARK, Mill, an_event, sums
from tidemill.cli.following import SignalledFollower, stopped_by_signals
from tidemill.core.errors import EngineError
from tidemill.core.exit_code import ExitCode

SOON = 60.0


@pytest.fixture
def quick(tmp_path: Path) -> Mill:
    """A pipeline with a batch every second."""
    mill = sums(tmp_path, NO_SPARK)
    (file,) = (path for path in tmp_path.rglob("*.py") if 'every="1 minute"' in path.read_text())
    file.write_text(file.read_text().replace('every="1 minute"', 'every="1 second"'))
    return mill


@contextmanager
def following(mill: Mill, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command, which does not outlive the test."""
    command = [sys.executable, "-m", "tidemill.cli.main", "--project", str(mill.project.folder), "run", "sums"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--follow", *options], text=True, env={**os.environ}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> Any:
    """The next line of its output."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_process_runs_a_batch_for_what_comes_and_ends_well_when_asked(quick: Mill, number: signal.Signals) -> None:
    quick.feed([an_event(1), an_event(2)])
    with following(quick, "--json") as process:
        first = line(process)
        quick.feed([an_event(31)] * 3)
        second = line(process)
        assert [(each["batch_id"], each["read"]) for each in (first, second)] == [(1, 2), (2, 3)]
        process.send_signal(number)
        said, complained = process.communicate(timeout=SOON)
    assert process.returncode == ExitCode.DONE, complained
    assert json.loads(said) == {"event": "ended", "outcome": "stopped", "batches": 2}
    assert complained == "stopping after the present batch; another signal stops at once\n"


def test_signal_stops_the_pause_and_a_second_one_whatever_goes_on(capfd: pytest.CaptureFixture[str]) -> None:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    with stopped_by_signals(as_json=False) as follower:
        assert not follower.stopping()
        os.kill(os.getpid(), signal.SIGTERM)
        follower.pause(3_600)
        assert follower.stopping()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in numbers] == before
    assert capfd.readouterr().err.count("stopping after the present batch") == 1


def test_first_signal_lets_the_batch_end_after_spark_has_taken_the_signal_for_itself(
    quick: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def started(_: object) -> object:
        taken.append(signal.signal(signal.SIGINT, signal.default_int_handler))
        return NO_SPARK

    def batches(project: object, pipeline: str, follower: SignalledFollower, **more: Any) -> Iterator[Any]:
        more["session"]()
        os.kill(os.getpid(), signal.SIGINT)
        yield from ()
        assert follower.stopping()

    monkeypatch.setattr("tidemill.run.following.follow", batches)
    said = type_command(quick.project.folder, "run", "sums", "--follow", "--json", session=started)
    assert len(taken) == 1
    assert (said.code, said.json["outcome"]) == (ExitCode.DONE, "stopped")


def test_spark_that_failed_is_started_anew(quick: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def batches(project: object, pipeline: str, follower: SignalledFollower, **more: Any) -> Iterator[Any]:
        for _ in range(2):
            more["session"]()
        follower.failed(EngineError("Spark is gone"))
        more["session"]()
        yield from ()

    def start(_: object) -> object:
        started.append(len(started))
        return NO_SPARK

    monkeypatch.setattr("tidemill.run.following.follow", batches)
    said = type_command(quick.project.folder, "run", "sums", "--follow", session=start)
    assert said.code == ExitCode.DONE
    assert started == [0, 1]
    assert "Spark is gone" in said.err
