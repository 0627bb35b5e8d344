"""Executes batches of a pipeline in this process, at its pace, until somebody stops it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.read_limit import ReadLimit
from tidemill.core.protocol.events import Committed
from tidemill.project.project import Project
from tidemill.run.loop import Order, run_batches
from tidemill.run.watching import Watcher

if TYPE_CHECKING:
    from tidemill.run.sessions import Opens

_TRIES = 3
"""An engine that has failed so often in a row does not come back by itself."""

_LEAST = 5.0
"""Seconds to wait at least before something is tried again."""


class Follower(Protocol):
    """Who wants the batches: says when to stop, and is told what fails."""

    def stopping(self) -> bool:
        """Whether no other batch shall begin."""
        ...

    def failed(self, error: TidemillError) -> None:
        """A batch could not run, or did not commit; it is tried again after the next pause."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait, but not after `stopping` has become true."""
        ...


@dataclass
class _Plans(Watcher):
    """Notes whether the last batch may have left something over because it may read no more."""

    limit: ReadLimit
    full: bool = False

    def claimed(self, plan: BatchPlan, attempt: int) -> None:
        """A batch has begun."""
        taken = [r for ranges in plan.reads.values() for r in ranges]
        self.full = plan.live is not None and self.limit.is_reached(taken)


def follow(
    project: Project, pipeline: str, follower: Follower, *, limit: int | None = None, session: Opens | None = None
) -> Iterator[Committed]:
    """Execute a batch each time that the pipeline's `every` has passed, until told to stop, and yield each commit.

    A batch that has read as much as it may is followed by the next one at once. What may come right by itself is told
    and tried again, after at least five seconds: a batch that another process holds, a log or store that cannot be
    reached, an engine that fails once or twice. `limit` is the most records of a batch, by default the project's.

    Raises:
        TidemillError: somebody has to do something about it, or it happened after the follower wanted to stop.
    """
    every, failures, ledger = project.pipeline(pipeline).spec.every.total_seconds(), 0, project.ledger(pipeline)
    while not follower.stopping():
        begin, plans, pause = monotonic(), _Plans(project.limit(limit)), every
        try:
            order = Order(limit=limit)
            for commit in run_batches(project, pipeline, order, session=session, watcher=plans, ledger=ledger):
                pause = 0.0 if plans.full else every
                yield commit
            failures = 0
        except TidemillError as error:
            failures += isinstance(error, EngineError)
            if follower.stopping() or not error.retryable or failures == _TRIES:
                raise
            follower.failed(error)
            pause = max(every, monotonic() - begin + _LEAST)
        if pause:
            follower.pause(max(pause - (monotonic() - begin), 0.0))
