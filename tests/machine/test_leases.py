"""Holders of a claim in processes of their own: alive and slow, frozen, ended; seen from here and from elsewhere.

"Elsewhere" is another machine on the same store: it sees neither processes nor monotonic clock of this one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.projects import NO_SPARK, ROOT, Mill, an_event, somebody
from tidemill.core.errors import Busy
from tidemill.core.protocol.failpoints import VARIABLE, Injected
from tidemill.ledger import process
from tidemill.ledger.process import is_gone, this_process
from tidemill.project.project import Project

TAKEOVER = 1.0
HOUR = timedelta(hours=1)
ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("spark_jobs", "tests"))}
IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class Held:
    """A process that stands still in the midst of a batch, and lives."""

    pid: int
    folder: Path

    def ends(self) -> str:
        """Let it go on; what it says."""
        (self.folder / "go-on").touch()
        return await_file(self.folder / "said").read_text()


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Its end is not waited for."""
    try:
        yield
    finally:
        process.kill()


def await_file(path: Path) -> Path:
    """The file, once it is there."""
    deadline = time.monotonic() + 100
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
    return path


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    """Starts processes that have loaded everything."""
    command, pipe = [sys.executable, "-m", "machine.holder"], subprocess.PIPE
    with subprocess.Popen(command, env=ENVIRON, stdin=pipe, stdout=pipe, text=True) as found:
        yield found
        assert found.stdin is not None
        found.stdin.close()


@pytest.fixture
def holding(nursery: subprocess.Popen[str], mill: Mill) -> Iterator[Held]:
    """A process that holds the claim of the next batch, and waits."""
    folder = mill.project.folder
    assert nursery.stdin is not None
    assert nursery.stdout is not None
    nursery.stdin.write(f"{folder} {folder / 'said'} state:sums=pause:{folder / 'go-on'}\n")
    nursery.stdin.flush()
    held = Held(int(nursery.stdout.readline()), folder)
    await_file(folder / "go-on.reached")
    yield held
    with suppress(ProcessLookupError):
        os.kill(held.pid, signal.SIGKILL)


@pytest.fixture
def mill(a_mill: Callable[..., Mill]) -> Mill:
    """A pipeline whose batches are taken over after a second. No window closes: the audit takes seconds to load."""
    made = a_mill()
    declared = made.project.folder / "pipelines" / "pipeline.py"
    declared.write_text(declared.read_text().replace('"1 minute"', f'"1 minute", takeover_after="{TAKEOVER:g} s"'))
    made.feed([an_event(1), an_event(2)])
    return Mill(Project.load(made.project.folder), NO_SPARK, made.name)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is on another machine from now on."""
    monkeypatch.setattr(process, "_boot", lambda: "another kernel")


def run(mill: Mill, *, ahead: timedelta = 0 * HOUR) -> Any:
    """Another run, on a machine whose clock goes so far ahead."""
    return mill.run(clock=datetime.now(UTC) + ahead)


def lease_of(mill: Mill) -> Path:
    """The object that the holder renews."""
    [found] = (mill.project.folder / "lake" / "pipelines" / "sums" / "leases").iterdir()
    return found


def clock_jumps(mill: Mill, by: timedelta) -> None:
    """The file system's clock jumps: what was written before is now so much younger, or older."""
    file = lease_of(mill)
    written = file.stat().st_mtime - by.total_seconds()
    os.utime(file, (written, written))


def test_a_slow_holder_is_left_alone_whatever_clocks_say(
    mill: Mill, holding: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(2 * TAKEOVER)
    for kernel in (process._boot(), "another kernel"):
        monkeypatch.setattr(process, "_boot", lambda kernel=kernel: kernel)
        for ahead in (0 * HOUR, HOUR, -HOUR):
            with pytest.raises(Busy, match="is open"):
                run(mill, ahead=ahead)
    for jump in (HOUR, -HOUR):
        clock_jumps(mill, jump)
        with pytest.raises(Busy):
            run(mill)
    assert holding.ends() == "Committed"
    assert mill.project.ledger("sums").view().position.batch_id == 1


def test_a_frozen_holder_is_overtaken_by_a_clock_that_runs_behind_and_ends_fenced(mill: Mill, holding: Held) -> None:
    os.kill(holding.pid, signal.SIGSTOP)
    time.sleep(1.5 * TAKEOVER)
    assert run(mill, ahead=-HOUR).attempt == 2
    os.kill(holding.pid, signal.SIGCONT)
    assert holding.ends() == "Fenced"


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("jump", [pytest.param(0 * HOUR, marks=pytest.mark.long), -HOUR])
def test_a_frozen_holder_is_overtaken_from_another_machine(mill: Mill, holding: Held, jump: timedelta) -> None:
    os.kill(holding.pid, signal.SIGSTOP)
    time.sleep(1.5 * TAKEOVER)
    clock_jumps(mill, jump)
    assert run(mill, ahead=-HOUR).attempt == 2


def test_a_container_with_the_same_host_name_is_not_taken_for_gone(mill: Mill) -> None:
    if subprocess.run([*IN_A_CONTAINER, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine permits no process namespaces")
    folder = mill.project.folder
    command = [*IN_A_CONTAINER, sys.executable, "-m", "machine.holder", str(folder), str(folder / "said")]
    environ = {**ENVIRON, VARIABLE: f"state:sums=pause:{folder / 'go-on'}"}
    with subprocess.Popen(command, env=environ) as container, ended(container):
        await_file(folder / "go-on.reached")
        opened = mill.project.ledger("sums").view().open_batch
        assert opened is not None
        assert (opened.executor.pid, opened.executor.host) == (1, this_process().host)
        with pytest.raises(Busy):
            run(mill)
        assert Held(container.pid, folder).ends() == "Committed"


def test_a_process_is_gone_only_where_its_number_means_it() -> None:
    gone = replace(this_process(), process_started="1")
    assert is_gone(gone)
    others = [{"boot": "another"}, {"pid_namespace": "1"}, {"host": "another"}, {"boot": None, "pid_namespace": None}]
    assert not any(is_gone(replace(gone, **other)) for other in others)
    assert not is_gone(this_process())


def test_identities_of_look_alikes_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    here = this_process().identity
    assert this_process().identity == here
    monkeypatch.setattr(process, "_namespace", lambda _: "4026539999")
    assert this_process().identity != here


def test_a_batch_that_failed_is_continued_at_once(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "planned=raise")
    with pytest.raises(Injected):
        mill.run(executor=somebody("task 1"))
    monkeypatch.delenv(VARIABLE)
    assert mill.run(executor=somebody("task 2")).attempt == 2


def test_nothing_is_left_of_a_lease_when_its_batch_has_ended(mill: Mill) -> None:
    run(mill)
    assert list((mill.project.folder / "lake" / "pipelines" / "sums" / "leases").iterdir()) == []
    deadline = time.monotonic() + 10
    while any(t.name == "tidemill-lease" for t in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_maintenance_removes_leases_of_runs_that_were_killed_but_not_that_of_the_open_batch(
    mill: Mill, holding: Held
) -> None:
    open_one = lease_of(mill)
    young, old = open_one.with_name("young"), open_one.with_name("old")
    two_hours_ago = time.time() - 7_200
    for file in (young, old):
        file.write_text("{}")
    os.utime(old, (two_hours_ago, two_hours_ago))
    lease = mill.project.lease("sums", timedelta(seconds=1))
    assert lease.sweep(HOUR, keep=open_one.name, dry_run=True) == 1
    assert old.exists()
    assert lease.sweep(HOUR, keep=open_one.name) == 1
    assert {file.name for file in open_one.parent.iterdir()} == {open_one.name, "young"}
    assert holding.ends() == "Committed"


def test_a_store_that_refuses_leases_stops_no_batch(mill: Mill) -> None:
    blocked = mill.project.folder / "lake" / "pipelines" / "sums"
    blocked.mkdir(parents=True)
    (blocked / "leases").write_text("a file, not a folder")
    assert run(mill).batch_id == 1
