"""Which process executes a batch, and whether it is still alive."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from tidemill.core.protocol.events import Executor
from tidemill.core.protocol.leases import Clock

_PROC = Path("/proc")


def this_process(identity: str | None = None) -> Executor:
    """This process as an executor.

    The default identity names the host, the process, its namespace and its start time: two containers with the same
    host name may both be process 1.
    """
    host, pid, started, namespace = socket.gethostname(), os.getpid(), _started(os.getpid()), _namespace("pid")
    named = f"process {pid} on {host} ({namespace or '-'}/{started or '-'})"
    return Executor(
        identity=identity or named,
        host=host,
        pid=pid,
        process_started=started or "",
        boot=_boot(),
        pid_namespace=namespace,
    )


def is_visible(executor: Executor) -> bool:
    """Whether this process can look the executor's process up: same kernel, same process namespace."""
    here = (socket.gethostname(), _boot(), _namespace("pid"))
    return None not in here and here == (executor.host, executor.boot, executor.pid_namespace)


def is_gone(executor: Executor) -> bool:
    """Whether the executor's process has certainly ended. Always False if it is not visible from here.

    The kernel reuses process ids, so the start times are compared too.
    """
    if not is_visible(executor) or not executor.process_started:
        return False
    return _started(executor.pid) != executor.process_started


def clock() -> Clock:
    """The monotonic clock. Processes on the same kernel and in the same time namespace can compare its readings."""
    boot = _boot()
    kernel = f"{boot}/{_namespace('time') or ''}" if boot else ""
    return Clock(kernel=kernel, seconds=time.monotonic())


def _boot() -> str | None:
    """The id of this boot of the kernel; None if it cannot be read."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _namespace(kind: str) -> str | None:
    try:
        return str((_PROC / "self/ns" / kind).stat().st_ino)
    except OSError:
        return None


def _started(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    # State Z or X in proc(5): the process has ended, only its parent has not noticed. Field 22 is the start time.
    return None if state in "ZX" else fields[18]
