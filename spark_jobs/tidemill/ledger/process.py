"""Which process executes a batch, and whether it still lives."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from tidemill.core.events import Executor


def this_process(identity: str | None = None) -> Executor:
    """This process as an executor; without an identity of its own it is named by host and process."""
    host, pid = socket.gethostname(), os.getpid()
    return Executor(
        identity=identity or f"process {pid} on {host}", host=host, pid=pid, process_started=_started(pid) or ""
    )


def is_gone(executor: Executor) -> bool:
    """Whether the executor's process certainly does not run any more: only known on its own host.

    A process number is given out again, so the moment of the start is compared too.
    """
    if executor.host != socket.gethostname() or not executor.process_started:
        return False
    return _started(executor.pid) != executor.process_started


def _started(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    # A zombie in the sense of proc(5) has ended; only its parent has not noticed. Field 22 is the start.
    return None if state in "ZX" else fields[18]
