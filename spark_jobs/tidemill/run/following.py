"""Executes batches of a pipeline in this process, at its pace, until somebody stops it."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tidemill.core.errors import EngineError, TidemillError
from tidemill.core.protocol.events import Committed
from tidemill.log.pipeline_topics import held_of
from tidemill.project.project import Project
from tidemill.run.loop import Order, run_batches

if TYPE_CHECKING:
    from tidemill.run.sessions import Opens

_TRIES = 3
"""An engine that has failed so often in a row does not come back by itself."""


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


def follow(
    project: Project, pipeline: str, follower: Follower, *, limit: int | None = None, session: Opens | None = None
) -> Iterator[Committed]:
    """Execute a batch each time that the pipeline's `every` has passed, until told to stop, and yield each commit.

    While the log holds at least as much as a batch has read, the next one begins at once. What may come right by itself
    is told and tried again: a batch that another process holds, a log or store that cannot be reached, an engine that
    fails once or twice. `limit` is the most records of a batch, by default the project's.

    Raises:
        TidemillError: somebody has to do something about it, or it happened after the follower wanted to stop.
    """
    every, failures = project.pipeline(pipeline).spec.every.total_seconds(), 0
    while not follower.stopping():
        begin, behind = monotonic(), False
        try:
            for commit in run_batches(project, pipeline, Order(limit=limit), session=session):
                yield commit
                behind = _is_behind(project, commit)
            failures = 0
        except TidemillError as error:
            failures += isinstance(error, EngineError)
            if follower.stopping() or not error.retryable or failures == _TRIES:
                raise
            follower.failed(error)
        if not behind:
            follower.pause(every - (monotonic() - begin))


def _is_behind(project: Project, commit: Committed) -> bool:
    """Whether the log holds at least as many records as this batch has read."""
    topics, left = commit.position.topics, 0
    for name, held in held_of(project.log(), topics).items():
        committed = topics[name].offsets
        left += sum(max(r.until_offset - committed.get(n, r.from_offset), 0) for n, r in held.items())
    return left > 0 and left >= sum(account.read for account in commit.accounts.values())
