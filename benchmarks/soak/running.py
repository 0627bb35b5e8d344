"""`tidemill up` in a folder of its own, for programs that measure it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.errors import EngineError
from tidemill_airflow.local.client import Client, free_port
from tidemill_airflow.local.home import USER, Home, Running
from tidemill_airflow.local.up import state_of

_READY = 400.0


@dataclass
class Up:
    """What runs in the project of `folder`. `ready_s` is how long it took to get ready."""

    folder: Path
    process: subprocess.Popen[bytes]
    ready_s: float = 0.0

    @property
    def home(self) -> Path:
        """Airflow's folder."""
        return self.folder / ".tidemill" / "airflow"

    def state(self) -> Running | None:
        """What runs, as the supervisor has noted it."""
        return state_of(self.home)

    def said(self) -> str:
        """The last lines of `tidemill up`."""
        return (self.folder / "up.log").read_text()[-2000:]

    def client(self) -> Client:
        """A client of the REST API that is logged in."""
        found = self.state()
        assert found is not None
        return Client(found.address, user=USER, password=Home(self.home).secrets().password)

    def check(self) -> None:
        """Raise an error if it has ended by itself."""
        if self.process.poll() is not None:
            raise EngineError(f"it ended by itself: {self.said()}")


@contextmanager
def up(folder: Path, options: Sequence[str]) -> Iterator[Up]:
    """`tidemill up`, once it is ready. Whatever happens, nothing of it runs afterwards.

    Raises:
        EngineError: it does not get ready.
    """
    words = [sys.executable, "-m", "tidemill.cli.main", "--project", str(folder)]
    with (folder / "up.log").open("wb") as said:
        command = [*words, "up", "--port", str(free_port()), *options]
        found = Up(folder, subprocess.Popen(command, stdout=said, stderr=said))
    began = time.monotonic()
    try:
        while not ((state := found.state()) and state.address):
            found.check()
            if time.monotonic() - began > _READY:
                raise EngineError(f"not ready: {found.said()}")
            time.sleep(0.2)
        found.ready_s = time.monotonic() - began
        yield found
    finally:
        subprocess.run([*words, "down"], check=True)
        found.process.wait()


def processes_in(folder: Path) -> list[int]:
    """The processes that work in a folder: every part and every task does."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if (path / "cwd").resolve().is_relative_to(folder):
                found.append(int(path.name))
        except OSError:
            continue
    return found


def say(text: str) -> None:
    """Print a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
