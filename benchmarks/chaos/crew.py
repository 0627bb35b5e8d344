"""Workers as processes: started, signalled, and noticed when they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from chaos.workers import Kind, python
from support.projects import ROOT
from tidemill.core.protocol.failpoints import VARIABLE

_PATHS = os.pathsep.join(str(ROOT / name) for name in ("spark_jobs", "plugins", "tests", "benchmarks"))


class Crew:
    """All workers of a run; leaving it ends them. `has_spark` says whether the server still lives that they need.

    Workers have numbers, which are never used again.
    """

    def __init__(self, folder: Path, has_spark: Callable[[], bool]) -> None:
        self._has_spark = has_spark
        self._folder, self._count = folder, 0
        self._answers: deque[dict[str, Any]] = deque()
        self._ready = threading.Event()
        self._own: dict[int, subprocess.Popen[bytes]] = {}
        self._environ = {k: v for k, v in os.environ.items() if k != VARIABLE} | {"PYTHONPATH": _PATHS}

    def __enter__(self) -> Crew:
        with (self._folder / "nursery.log").open("wb") as said:
            self._nursery = subprocess.Popen(
                [sys.executable, "-m", "chaos.nursery"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                env=self._environ,
                start_new_session=True,
            )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        if not self._ready.wait(120):
            raise RuntimeError(f"the nursery did not start: {(self._folder / 'nursery.log').read_text()[-2000:]}")
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        for process in self._own.values():
            # A Java of its own ends with it, but not when it hangs.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        self._nursery.stdin.close()
        self._nursery.wait(30)
        self._listener.join()
        self._nursery.stdout.close()

    def start(self, kind: Kind, arguments: Sequence[str], environ: dict[str, str], said: Path) -> int:
        """Start a worker and return its number. What it says goes to the end of a file."""
        self._count += 1
        if kind.spark:
            with said.open("ab") as output:
                self._own[self._count] = subprocess.Popen(
                    python(kind, arguments),
                    stdout=output,
                    stderr=output,
                    stdin=subprocess.DEVNULL,
                    env={**self._environ, **environ},
                    start_new_session=True,
                )
        else:
            self._tell(
                start=self._count, module=kind.module, arguments=list(arguments), environ=environ, said=str(said)
            )
        return self._count

    def signal(self, number: int, name: str) -> None:
        """Send a signal to a worker; nothing happens when it has ended."""
        if number in self._own:
            self._own[number].send_signal(signal.Signals[name])
        else:
            self._tell(signal=signal.Signals[name].value, to=number)

    def ended(self) -> list[tuple[int, int]]:
        """Who has ended since the last time, and with which code: that of a signal is below zero."""
        found = []
        while self._answers:
            answer = self._answers.popleft()
            found.append((answer["ended"], answer["status"]))
        for number, process in list(self._own.items()):
            if (code := process.poll()) is not None:
                del self._own[number]
                found.append((number, code))
        if not self._has_spark():
            raise RuntimeError(f"the Spark server ended: see connect.log beside {self._folder}")
        if self._nursery.poll() is not None:
            raise RuntimeError(f"the nursery ended: {(self._folder / 'nursery.log').read_text()[-2000:]}")
        return found

    def _listen(self) -> None:
        assert self._nursery.stdout is not None
        for line in self._nursery.stdout:
            answer = json.loads(line)
            if "ready" in answer:
                self._ready.set()
            else:
                self._answers.append(answer)

    def _tell(self, **command: Any) -> None:
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps(command) + "\n")
        self._nursery.stdin.flush()
