"""Starts processes, starts those that end again, and stops all of them: in order, then by force.

Each part leads a session of its own, and what it starts stays in that session. So a part can be ended as a whole, also
by a later process, from what the home has noted. Ctrl-C in a terminal reaches the supervisor alone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tidemill.core.errors import EngineError
from tidemill_airflow.local.home import Home, Running
from tidemill_airflow.local.processes import Mark, end_session, mark_of, send

_PAUSE = 0.1
_MOST_STARTS, _WITHIN, _LONGEST = 5, 120.0, 10.0
_LAST_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A process to run: its output is appended to `said`. When it is stopped, it has `grace` seconds to end."""

    name: str
    command: tuple[str, ...]
    said: Path
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    grace: float = 10.0


@dataclass(slots=True)
class _Kept:
    """A part that runs, or is to be started again at `due`."""

    part: Part
    process: subprocess.Popen[bytes]
    mark: Mark
    starts: deque[float]
    due: float | None = None


class Supervisor:
    """Keeps parts running, and tells what happens to them. Not for several threads. The caller holds the home."""

    def __init__(self, home: Home, *, tell: Callable[[str], None] = lambda _: None) -> None:
        own = mark_of(os.getpid())
        assert own is not None
        self._home, self.tell, self._own = home, tell, own
        self._kept: dict[str, _Kept] = {}
        self._address = ""
        self._note()

    @property
    def marks(self) -> Mapping[str, Mark]:
        """The leaders of all parts by name, in the order in which they were started."""
        return {name: kept.mark for name, kept in self._kept.items()}

    def ended(self) -> tuple[str, ...]:
        """The parts that have ended, and were not started again."""
        return tuple(name for name, kept in self._kept.items() if kept.process.poll() is not None)

    def start(self, part: Part) -> None:
        """Start a part that does not run yet.

        Raises:
            EngineError: its program cannot be started.
        """
        process, mark = _launch(part)
        self._kept[part.name] = _Kept(part, process, mark, deque([time.monotonic()], maxlen=_MOST_STARTS))
        self._note()

    def run(self, part: Part, *, asked: Callable[[], bool]) -> None:
        """Run a part to its end while all others are kept running. `asked` says that somebody wants to stop.

        Raises:
            EngineError: it failed, or a part ends again and again.
        """
        self.start(part)
        code = None
        while code is None and not asked():
            time.sleep(_PAUSE)
            code = self._kept[part.name].process.poll()
            self.look(without=part.name)
        kept = self._kept.pop(part.name)
        _end(kept)
        self._note()
        if code:
            raise EngineError(f"{part.name} ended with code {code}:\n{last_lines(part.said)}", fix=_see(part))

    def note_address(self, address: str) -> None:
        """Note that everything is ready, and where."""
        self._address = address
        self._note()

    def look(self, *, without: str = "") -> None:
        """Start parts again that have ended. What they left running is ended first.

        Raises:
            EngineError: a part ended too often.
        """
        for kept in self._kept.values():
            if kept.part.name != without and kept.due is None and kept.process.poll() is not None:
                self._has_ended(kept)
            if kept.due is not None and kept.due <= time.monotonic():
                kept.process, kept.mark = _launch(kept.part)
                kept.starts.append(time.monotonic())
                kept.due = None
                self._note()

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop all parts, the last one first, each when the one before has ended. `hurry` says to kill what is left."""
        for name in reversed(tuple(self._kept)):
            kept = self._kept[name]
            send(kept.mark, signal.SIGTERM)
            end = time.monotonic() + kept.part.grace
            while kept.process.poll() is None and time.monotonic() < end and not hurry():
                time.sleep(_PAUSE)
            _end(kept)
            del self._kept[name]
        self._home.forget()

    def _has_ended(self, kept: _Kept) -> None:
        part, now = kept.part, time.monotonic()
        left = end_session(kept.mark)
        code = kept.process.returncode
        why = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        if len(kept.starts) == _MOST_STARTS and now - kept.starts[0] < _WITHIN:
            raise EngineError(
                f"{part.name} ended {_MOST_STARTS} times, the last time by {why}:\n{last_lines(part.said)}",
                fix=_see(part),
            )
        recent = sum(now - start < _WITHIN for start in kept.starts)
        kept.due = now + min(2.0**recent / 2, _LONGEST)
        beside = f" and {left} processes that it left" if left else ""
        self.tell(f"{part.name} ended by {why}{beside}: it is started again")

    def _note(self) -> None:
        self._home.note(Running(supervisor=self._own, parts=self.marks, address=self._address))


def last_lines(path: Path, count: int = _LAST_LINES) -> str:
    """The last lines of a file, without empty ones."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join([line for line in lines if line.strip()][-count:])


def _launch(part: Part) -> tuple[subprocess.Popen[bytes], Mark]:
    part.said.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.said.open("ab") as said:
            process = subprocess.Popen(
                part.command,
                cwd=part.said.parent,
                env=dict(part.environ) or None,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
    except OSError as error:
        raise EngineError(f"{part.name} cannot be started: {error}", fix="tidemill doctor") from None
    # Until it is waited for, the process keeps its id, even if it has ended.
    mark = mark_of(process.pid)
    assert mark is not None
    return process, mark


def _end(kept: _Kept) -> None:
    """End everything that is left of a part."""
    end_session(kept.mark)
    kept.process.wait()


def _see(part: Part) -> str:
    return f"all it said is in {part.said}"
