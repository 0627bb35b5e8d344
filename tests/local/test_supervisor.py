"""Processes under one supervisor: started, started again, stopped in order, and never left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidemill.core.errors import ConfigError, EngineError
from tidemill_airflow.local.client import is_free
from tidemill_airflow.local.home import Home, Running
from tidemill_airflow.local.plan import Wanted
from tidemill_airflow.local.processes import Mark, end_session, is_alive, mark_of, members
from tidemill_airflow.local.supervisor import Part, Supervisor
from tidemill_airflow.local.up import down, up

SUPERVISOR = """
import sys, time
from pathlib import Path
from tidemill_airflow.local.home import Home
from tidemill_airflow.local.supervisor import Part, Supervisor
home = Home(Path(sys.argv[1]))
home.make()
assert home.hold()
supervisor = Supervisor(home)
supervisor.start(Part(name="part", command=("sh", "-c", sys.argv[2]), said=home.said("part")))
supervisor.note_address("http://127.0.0.1:1")
time.sleep(600)
"""
# Its child leads a process group of its own, as a task of Airflow does.
WITH_CHILD = "set -m; sleep 600 & echo $! > child; wait"
ANSWERS = "trap 'echo NAME >> ../ended; exit 0' TERM; echo > NAME.up; while :; do sleep 0.02; done"


def wait_for(look: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    found.make()
    assert found.hold()
    yield found
    found.clean()
    found.free()


@pytest.fixture
def supervisor(home: Home) -> Iterator[Supervisor]:
    found = Supervisor(home)
    yield found
    found.stop(hurry=lambda: True)


def part(home: Home, name: str, script: str, *, grace: float = 20.0) -> Part:
    return Part(name=name, command=("sh", "-c", script), said=home.said(name), grace=grace)


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[tuple[Home, Running, int]]:
    """A home whose supervisor was killed by force, what it had noted, and a child of its part."""
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(folder), WITH_CHILD])
    home, child = Home(folder), folder / "parts" / "child"
    wait_for(lambda: (noted := home.running()) and noted.address and child.exists() and child.read_text().strip())
    noted = home.running()
    assert noted is not None
    process.kill()
    process.wait()
    yield home, noted, int(child.read_text())
    for mark in noted.parts.values():
        end_session(mark)


def test_parts_stop_in_the_opposite_order_of_their_start(home: Home, supervisor: Supervisor) -> None:
    for name in ("first", "second", "third"):
        supervisor.start(part(home, name, ANSWERS.replace("NAME", name)))
        wait_for((home.folder / "parts" / f"{name}.up").exists)
    supervisor.stop()
    assert (home.folder / "ended").read_text().split() == ["third", "second", "first"]
    assert home.running() is None


def test_part_that_does_not_end_is_killed_with_its_children(home: Home, supervisor: Supervisor) -> None:
    supervisor.start(part(home, "deaf", f"trap '' TERM; {WITH_CHILD}; wait", grace=0.1))
    child = home.folder / "parts" / "child"
    wait_for(lambda: child.exists() and child.read_text().strip())
    left = members(supervisor.marks["deaf"])
    assert int(child.read_text()) in left
    supervisor.stop()
    assert not any(Path(f"/proc/{pid}/cmdline").exists() for pid in left if pid != int(child.read_text()))


def test_part_that_ended_is_started_again_and_what_it_left_is_ended_first(home: Home, supervisor: Supervisor) -> None:
    supervisor.start(part(home, "part", WITH_CHILD))
    child = home.folder / "parts" / "child"
    wait_for(lambda: child.exists() and child.read_text().strip())
    before, orphan = supervisor.marks["part"], mark_of(int(child.read_text()))
    assert orphan is not None
    os.kill(before.pid, signal.SIGKILL)

    def again() -> bool:
        supervisor.look()
        return supervisor.marks["part"] != before

    wait_for(again)
    assert not is_alive(orphan)
    assert is_alive(supervisor.marks["part"])


def test_part_that_ends_again_and_again_is_given_up_with_its_last_words(
    home: Home, supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill_airflow.local.supervisor._MOST_STARTS", 2)
    monkeypatch.setattr("tidemill_airflow.local.supervisor._LONGEST", 0.0)
    supervisor.start(part(home, "broken", "echo no such table; exit 3"))

    def looks() -> None:
        for _ in range(1000):
            supervisor.look()
            time.sleep(0.02)

    with pytest.raises(EngineError, match=r"broken ended 2 times, .* code 3:\n(no such table\s*)+") as found:
        looks()
    assert str(home.said("broken")) in found.value.fix


def test_program_that_is_not_there_is_an_error_and_no_part(home: Home, supervisor: Supervisor) -> None:
    with pytest.raises(EngineError, match="absent cannot be started"):
        supervisor.start(replace(part(home, "absent", ""), command=("/no/such/program",)))
    assert supervisor.marks == {}


def test_step_that_fails_is_an_error_with_its_last_words(home: Home, supervisor: Supervisor) -> None:
    with pytest.raises(EngineError, match="migration ended with code 2:\nthe database is newer"):
        supervisor.run(part(home, "migration", "echo the database is newer; exit 2"), asked=lambda: False)
    assert supervisor.marks == {}


def test_down_ends_what_a_killed_supervisor_left_and_a_second_one_finds_nothing(
    killed: tuple[Home, Running, int],
) -> None:
    home, noted, child = killed
    leader = noted.parts["part"]
    assert child in members(leader)
    said: list[str] = []
    assert down(Wanted(home=home.folder), said.append) == 0
    assert down(Wanted(home=home.folder), said.append) == 0
    assert members(leader) == ()
    # The shell, and what it started.
    assert said == ["ended 2 processes that were left", f"nothing runs in {home.folder}"]


def test_down_stops_a_supervisor_that_runs(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(folder), WITH_CHILD]) as process:
        home = Home(folder)
        wait_for(lambda: (noted := home.running()) and noted.address)
        noted = home.running()
        assert noted is not None
        said: list[str] = []
        assert down(Wanted(home=folder), said.append) == 0
        assert process.wait(10) == -signal.SIGTERM
    assert said == [f"stopping what runs in {folder}", "stopped"]
    assert members(noted.parts["part"]) == ()


def test_process_that_got_the_id_of_one_that_ended_is_not_killed(home: Home) -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as stranger:
        now = mark_of(stranger.pid)
        assert now is not None
        for stale in (replace(now, started=now.started - 1), replace(now, boot="an earlier one")):
            home.note(Running(supervisor=stale, parts={"part": stale}))
            assert home.clean() == 0
        assert stranger.poll() is None
        assert members(now) == (stranger.pid,)
        assert end_session(now) == 1


def test_file_that_a_crash_cut_is_as_none(home: Home) -> None:
    for text in ("", "{", "[]", '{"supervisor": {}}', '{"supervisor": 1, "parts": {}, "address": ""}'):
        (home.folder / "up.json").write_text(text)
        assert home.running() is None
        assert home.clean() == 0


def test_second_start_tells_the_address_and_starts_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    with subprocess.Popen([sys.executable, "-c", SUPERVISOR, str(folder), WITH_CHILD]) as process:
        home = Home(folder)
        wait_for(lambda: (noted := home.running()) and noted.address)
        before, said = home.running(), list[str]()
        assert up(Wanted(home=folder), said.append) == 0
        assert home.running() == before
        assert "it runs already" in said[0]
        assert "http://127.0.0.1:1" in said[0]
        assert home.secrets().password in said[0]
        process.terminate()
    down(Wanted(home=folder), said.append)


def test_port_that_is_taken_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        assert not is_free(port)
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is taken") as found:
            up(Wanted(home=tmp_path / "home", port=port), lambda _: None)
    assert "--port" in found.value.fix
    home = Home(tmp_path / "home")
    assert home.running() is None
    assert home.hold()
    home.free()


def test_home_of_another_airflow_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "airflow.cfg").touch()
    with pytest.raises(ConfigError, match="is the home of another Airflow: it has airflow"):
        up(Wanted(home=tmp_path), lambda _: None)
    said: list[str] = []
    assert down(Wanted(home=tmp_path), said.append) == 0
    assert said == [f"nothing runs in {tmp_path}"]
    assert [path.name for path in tmp_path.iterdir()] == ["airflow.cfg"]


def test_home_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(ConfigError, match="home: cannot be used: File exists"):
        up(Wanted(home=tmp_path / "home"), lambda _: None)


@pytest.mark.parametrize(("name", "value"), [("port", 0), ("port", 65_536), ("port", -1), ("rate", 0)])
def test_number_out_of_its_bounds_is_refused(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"--{name}: expected"):
        Wanted(**{name: value})  # type: ignore[arg-type]


def test_secrets_are_made_once_and_readable_by_the_owner_alone(home: Home) -> None:
    made = home.secrets()
    assert home.secrets() == made
    assert made.password not in repr(made)
    for file in (home.folder / "secrets.json", home.passwords):
        assert file.stat().st_mode & 0o777 == 0o600
    assert home.folder.stat().st_mode & 0o777 == 0o700


def test_home_has_one_supervisor_at_a_time(home: Home) -> None:
    assert not Home(home.folder).hold()
    home.free()
    assert home.hold()


def test_process_that_is_gone_has_no_mark_and_no_session() -> None:
    with subprocess.Popen(["true"], start_new_session=True) as process:
        mark = mark_of(process.pid)
    assert mark is not None
    assert not is_alive(mark)
    assert members(mark) == ()
    assert members(Mark(pid=2**22 + 1, started=0, boot=mark.boot)) == ()
