"""Runs servers on this machine: each in a process group of its own, awaited until ready, and stopped as a whole."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.errors import EngineError, TidemillError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / ".tidemill" / "local"
"""The folder for servers that are started by hand."""

_END = 20.0


@dataclass
class Server:
    """One process and its children. Errors begin with `name`; the output goes to the file `said`."""

    name: str
    said: Path
    patience: float = 60.0
    """Seconds that a start may take on a busy machine."""

    port: int = 0
    """The port it will listen on. It must be free, or another server would be mistaken for this one."""

    _process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the process, which leads its group."""
        assert self._process is not None
        return self._process.pid

    def start(
        self, command: Sequence[str], *, ready: Callable[[str], bool], environ: Mapping[str, str] | None = None
    ) -> None:
        """Start the process and wait until `ready` returns True for all its output so far.

        Raises:
            EngineError: it exited, or was not ready in time. The error contains the end of its output.
        """
        if self.port and listens(self.port):
            raise EngineError(f"{self.name}: somebody listens on port {self.port} already", fix="give another --port")
        self.said.parent.mkdir(parents=True, exist_ok=True)
        with self.said.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=self.said.parent,
                env={**os.environ, **(environ or {})},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            self._await(ready)
        except BaseException:
            self.kill()
            raise

    def _await(self, ready: Callable[[str], bool]) -> None:
        end = time.monotonic() + self.patience
        while not (ready(self._text()) and self.is_running):
            if not self.is_running or time.monotonic() > end:
                raise EngineError(
                    f"{self.name} did not start:\n" + "\n".join(self._why()), fix=f"all it said is in {self.said}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the process in order, or by force if that takes too long."""
        if self._process is None:
            return
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Kill the process group at once."""
        if self._process is not None:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def _text(self) -> str:
        return self.said.read_text(errors="replace")

    def _why(self) -> list[str]:
        lines = self._text().splitlines()
        return [line for line in lines if "ERROR" in line or "Exception" in line][:5] or lines[-5:]


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def listens(port: int) -> bool:
    """Whether a server listens on this port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until_ended(what: str) -> None:
    """Print what runs and wait for Ctrl-C."""
    print(f"{what}; Ctrl-C ends it", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


def command(run: Callable[[], None]) -> int:
    """Run the function and return the exit code. An error is printed in one line, and everything started is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run()
    except TidemillError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0
