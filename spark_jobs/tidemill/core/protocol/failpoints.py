"""Named boundaries of a batch where a process can be made to fail, for tests and demonstrations of recovery.

The environment variable TIDEMILL_FAILPOINT holds one failure, or several between semicolons:

    [before:|after:]NAME[@BATCH[+]]=ACTION

NAME is one of `boundaries_of` or `boundaries_beside` a pipeline. Without a side, the failure comes after the boundary.
`@5` means batch 5, `@5+` batch 5 or a later one; while there is no batch yet, the ledger is read as if for batch 0.
ACTION is

    raise         an error, as if the step had failed
    exit          the process ends at once
    kill          the process sends SIGKILL to itself
    lose          for a write: it succeeds, but the storage reports an error
    pause:FILE    wait until FILE exists; `FILE.reached` says that the wait has begun

While the variable is unset, a boundary costs one look-up in a dictionary.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.bind.flow import Flow
from tidemill.core.bind.sinks import StatefulSink, WindowedSink
from tidemill.core.errors import ConfigError, EngineError

VARIABLE = "TIDEMILL_FAILPOINT"
LONGEST_PAUSE = 600.0
"""Seconds; after them a paused process ends with an error."""

_READS = ("ledger", "bounds", "scan")
_inside: ContextVar[tuple[str, int] | None] = ContextVar("boundary", default=None)
_lost: set[tuple[_Failure, tuple[str, int]]] = set()


class Injected(EngineError):
    """A failure that the environment asked for."""


class LostAnswer(OSError):
    """The error of a storage that wrote, but could not confirm it."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A named step of a batch. If it `writes`, its answer can be lost."""

    name: str
    writes: bool


def boundaries_of(flow: Flow) -> tuple[Boundary, ...]:
    """Every boundary that a live batch of this pipeline can have: the reads, then the writes, each in order."""
    tables = [s.table for s in flow.sinks]
    stateful = [s.table for s in flow.sinks if isinstance(s, StatefulSink)]
    reads = list(_READS if flow.spec.max_drift is None else (*_READS, "look"))
    reads += [*(f"input:{i.topic}" for i in flow.inputs), *(f"records:{t}" for t in tables)]
    reads += [*(f"panes:{t}" for t in stateful), "side_outputs"]
    merged = [s.table for s in flow.sinks if isinstance(s, WindowedSink) and s.merges_ahead]
    writes = ["planned", "claimed", "cancelled", *(f"state:{t}" for t in stateful), *(f"merged:{t}" for t in merged)]
    writes += ["audited", "quarantine", "late"]
    writes += [*(f"published:{t}" for t in tables), *(f"sent:{s.topic}" for s in flow.sinks if s.topic)]
    writes += ["committed", "upkeep"]
    return (*(Boundary(name, False) for name in reads), *(Boundary(name, True) for name in writes))


def boundaries_beside(flow: Flow) -> tuple[Boundary, ...]:
    """The boundaries of amendments, rebuilds and maintenance, and of changes of names and owners."""
    windowed = [s.table for s in flow.sinks if isinstance(s, WindowedSink)]
    waiting = [*(s.table for s in flow.sinks if s.table not in windowed), "quarantine", *(["late"] if windowed else [])]
    writes = [*(f"waiting:{t}" for t in waiting), "corrections", "superseded", "generation", "maintenance", "decided"]
    writes += ["dropped", "renamed", "adopted", "forgotten", *(f"removed:{t}" for t in windowed)]
    return (Boundary("side_tables", False), *(Boundary(name, True) for name in writes))


def check_wanted(flow: Flow, resolved: Callable[[], Flow] | None = None) -> None:
    """Refuse a failure at a boundary that this pipeline does not have.

    `resolved` gives the flow with the topics that its patterns match; it is called only if a failure is wanted.

    Raises:
        ConfigError: there is no such boundary, or it does not write and cannot lose an answer.
    """
    if VARIABLE not in os.environ:
        return
    flow = resolved() if resolved is not None else flow
    known = {b.name: b for b in (*boundaries_of(flow), *boundaries_beside(flow))}
    for failure in _wanted():
        here = known.get(failure.name)
        if here is None or (failure.action == "lose" and not here.writes):
            action = failure.action.partition(":")[0]
            fitting = [b.name for b in known.values() if b.writes or action != "lose"]
            raise ConfigError(
                f"{VARIABLE}: {flow.name} has no boundary {failure.name!r} that could {action}",
                fix=f"name one of {', '.join(fitting)}",
            )


@contextmanager
def boundary(name: str, batch_id: int) -> Iterator[None]:
    """One step of a batch. It fails before, inside or after the step if the environment asks for that."""
    _reach("before", name, batch_id)
    token = _inside.set((name, batch_id))
    try:
        yield
    finally:
        _inside.reset(token)
    _reach("after", name, batch_id)


def answered() -> None:
    """Storages call this when a write has succeeded.

    Raises:
        LostAnswer: the environment asks for it, once for each batch in a process.
    """
    here = _inside.get()
    if here is None or VARIABLE not in os.environ:
        return
    for failure in _wanted():
        if failure.action == "lose" and failure.means(*here) and (failure, here) not in _lost:
            _lost.add((failure, here))
            raise LostAnswer(f"the answer of {here[0]} in batch {here[1]} was lost")


@dataclass(frozen=True, slots=True)
class _Failure:
    side: str
    name: str
    batch: str
    action: str

    @staticmethod
    def parse(text: str) -> _Failure:
        place, equals, action = text.partition("=")
        side, colon, rest = place.partition(":")
        if not (colon and side in ("before", "after")):
            side, rest = "after", place
        name, _, batch = rest.partition("@")
        kind = action.partition(":")[0]
        good = equals and kind in ("raise", "exit", "kill", "lose", "pause") and (not batch or _digits(batch))
        if not good:
            raise ConfigError(
                f"{VARIABLE}: expected [before:|after:]NAME[@BATCH[+]]=raise, exit, kill, lose or pause:FILE, "
                f"found {text!r}"
            )
        return _Failure(side, name, batch, action)

    def means(self, name: str, batch_id: int) -> bool:
        if name != self.name:
            return False
        if not self.batch:
            return True
        wanted = int(self.batch.rstrip("+"))
        return batch_id >= wanted if self.batch.endswith("+") else batch_id == wanted

    def happen(self, batch_id: int) -> None:
        kind, _, argument = self.action.partition(":")
        match kind:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(70)
            case "pause":
                _pause(Path(argument))
            case "raise":
                raise Injected(f"failpoint {self.side} {self.name} of batch {batch_id} was reached")


def _reach(side: str, name: str, batch_id: int) -> None:
    if VARIABLE not in os.environ:
        return
    for failure in _wanted():
        if failure.side == side and failure.means(name, batch_id):
            failure.happen(batch_id)


def _wanted() -> list[_Failure]:
    return [_Failure.parse(text) for text in os.environ.get(VARIABLE, "").split(";") if text]


def _digits(batch: str) -> bool:
    return batch.removesuffix("+").isdecimal()


def _pause(file: Path) -> None:
    file.with_name(f"{file.name}.reached").touch()
    end = time.monotonic() + LONGEST_PAUSE
    while not file.exists():
        if time.monotonic() > end:
            raise Injected(f"nobody wrote {file} in {LONGEST_PAUSE:.0f} seconds")
        time.sleep(0.01)
