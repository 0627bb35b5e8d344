"""Processes of this machine by name: each can be told from any later process with the same id."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_PAUSE = 0.05
_KILLING = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A process that leads a session of its own: its id, when it started, and the boot of the kernel.

    The kernel reuses ids, but not while a process of the session lives, and never with the same start time.
    """

    pid: int
    started: int
    boot: str


@dataclass(frozen=True, slots=True)
class _Seen:
    pid: int
    state: str
    session: int
    started: int

    @property
    def lives(self) -> bool:
        """Whether it has not ended; of a process in state Z or X only its parent has not noticed."""
        return self.state not in "ZX"


def mark_of(pid: int) -> Mark | None:
    """The mark of a process; None if there is no process with this id."""
    seen = _look(pid)
    return None if seen is None else Mark(pid=pid, started=seen.started, boot=_boot())


def is_alive(mark: Mark) -> bool:
    """Whether exactly this process runs."""
    seen = _look(mark.pid)
    return seen is not None and seen.lives and (seen.started, _boot()) == (mark.started, mark.boot)


def members(leader: Mark) -> tuple[int, ...]:
    """The living processes of the session that this process leads, or led before it ended.

    Empty if the id belongs to another process now: its session is not ours.
    """
    now = _look(leader.pid)
    if leader.boot != _boot() or (now is not None and now.started != leader.started):
        return ()
    return tuple(
        seen.pid for seen in _all() if seen.lives and seen.session == leader.pid and seen.started >= leader.started
    )


def end_session(leader: Mark) -> int:
    """Kill every process of the session, and return how many there were. Children that start meanwhile are killed, too.

    The caller waits for those that are its own children.
    """
    killed: set[int] = set()
    end = time.monotonic() + _KILLING
    while (found := members(leader)) and time.monotonic() < end:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        time.sleep(_PAUSE)
    return len(killed)


def send(mark: Mark, number: signal.Signals) -> None:
    """Send a signal to exactly this process. Nothing happens if it has ended."""
    if is_alive(mark):
        with suppress(ProcessLookupError):
            os.kill(mark.pid, number)


def _look(pid: int) -> _Seen | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # proc(5): the name in brackets may hold anything; fields 3, 6 and 22 are state, session and start time.
    fields = text.rpartition(")")[2].split()
    return _Seen(pid, fields[0], int(fields[3]), int(fields[19]))


def _all() -> Iterator[_Seen]:
    for path in _PROC.glob("[0-9]*"):
        seen = _look(int(path.name))
        if seen is not None:
            yield seen


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
