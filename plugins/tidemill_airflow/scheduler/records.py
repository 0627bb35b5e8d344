"""Starts runs of a pipeline when its log has records: what the triggerer does between two runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidemill.core.errors import TidemillError
from tidemill.inspect.lag import Lag, LagReader
from tidemill_airflow.scheduler.lag import reader_of

PATIENCE = 60.0
"""Seconds that a run may take to begin, or a batch to commit, before the same records are a reason for another run."""

LONGEST_PATIENCE = 900.0
"""The same after several runs that committed nothing: patience doubles each time."""


@dataclass(slots=True)
class Reason:
    """Decides when records are a reason to start a run. It sees ledger and log, and knows nothing of runs.

    After a commit or a decision, records that wait are a reason at once. Without any, they are a reason again only
    after a while, which doubles each time. A batch that somebody works at gets the same time to commit. While a
    person must decide, nothing is a reason. Times are in seconds of one clock.
    """

    _standing: tuple[object, ...] | None = None
    _due: float = 0.0
    _patience: float = PATIENCE

    def to_start(self, lag: Lag, now: float) -> bool:
        """Whether a run should start now. If so, it counts as started."""
        if not lag.records or lag.waits_for_person:
            self._standing = None
            return False
        opened = lag.open_batch
        standing = (lag.batch_id, opened and (opened.plan.batch_id, opened.decided))
        if standing != self._standing:
            at_work = opened is not None and opened.decided is None
            self._standing, self._patience = standing, PATIENCE
            self._due = now + PATIENCE if at_work else now
        if now < self._due:
            return False
        self._due = now + self._patience
        self._patience = min(2 * self._patience, LONGEST_PATIENCE)
        return True


class RecordsTrigger(BaseEventTrigger):
    """Fires when a pipeline's log has records that are not committed, and a run should start because of them.

    It reads ledger and log in a thread, every few seconds, and never the pipeline's file: another declaration makes
    another trigger. What goes wrong is logged, and tried again later and later.

    Args:
        pipeline: the pipeline.
        project: the folder with tidemill.toml, as the triggerer sees it.
        topics: the topics that it reads.
        patterns: the patterns of other topics that it reads.
        look_every: seconds from one look to the next.
    """

    def __init__(
        self,
        *,
        pipeline: str,
        project: str,
        topics: Sequence[str],
        patterns: Sequence[str] = (),
        look_every: float = 2.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline, self.project, self.look_every = pipeline, project, look_every
        self.topics, self.patterns = list(topics), list(patterns)
        self._reader: LagReader | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class and its arguments, which identify the trigger."""
        return f"{__name__}.{type(self).__name__}", {
            "pipeline": self.pipeline,
            "project": self.project,
            "topics": self.topics,
            "patterns": self.patterns,
            "look_every": self.look_every,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield an event for each run that should start, as long as the trigger lives."""
        reason, wait = Reason(), self.look_every
        while True:
            try:
                lag = await asyncio.to_thread(self._look)
            except Exception as error:
                self._reader = None
                wait = min(max(2 * wait, 1.0), PATIENCE)
                self.log.warning("%s: cannot look for records, again in %.0f s: %s", self.pipeline, wait, _told(error))
            else:
                wait = self.look_every
                if reason.to_start(lag, monotonic()):
                    found = {"pipeline": self.pipeline, "records": lag.records, "after_batch": lag.batch_id}
                    yield TriggerEvent(found)  # type: ignore[no-untyped-call]
            await asyncio.sleep(wait)

    def _look(self) -> Lag:
        self._reader = self._reader or reader_of(self.project, self.pipeline, self.topics, self.patterns)
        return self._reader.read()


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, TidemillError) else f"{type(error).__name__}: {error}"
