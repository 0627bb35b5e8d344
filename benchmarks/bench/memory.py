"""How much memory a round takes at most: of the driver, which is Python and Java, and of Spark's Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bench.machine import below

_FORGET_PEAK = "5"
"""What proc(5) wants in `clear_refs` to let the peak of a process begin anew."""


def forget_peaks() -> None:
    """Let the peaks of this process and of all below it begin anew. Does nothing where the kernel cannot."""
    for pid in below(os.getpid()):
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text(_FORGET_PEAK)


def peaks_mb() -> dict[str, int]:
    """The most that was resident since the peaks were forgotten, in MB (2**20 bytes); empty without /proc.

    `driver` is this process and Spark's Java together, which run tasks as well, `workers` all Python processes below
    that Java. Pages that workers share count in each of them, and the driver keeps what earlier rounds left there.
    """
    if not Path("/proc/self/status").is_file():
        return {}
    java = [pid for pid in below(os.getpid()) if _is_spark(pid)]
    workers = {worker for pid in java for worker in below(pid) if worker != pid}
    return {"driver": sum(map(_peak, (os.getpid(), *java))) // 2**10, "workers": sum(map(_peak, workers)) // 2**10}


def _is_spark(pid: int) -> bool:
    with suppress(OSError):
        return b"org.apache.spark.deploy.SparkSubmit" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False


def _peak(pid: int) -> int:
    """The peak of a process in kB, 0 if it has ended."""
    return next(_peaks(pid), 0)


def _peaks(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                yield int(line.split()[1])
