"""What the pages know about one pipeline, kept between requests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from tidemill.core.errors import LogError
from tidemill_airflow.pages.access import Run
from tidemill_airflow.pages.links import AirflowTask, task_of

if TYPE_CHECKING:
    from tidemill.core.bind.flow import Flow
    from tidemill.core.protocol.view import View
    from tidemill.inspect.recent_batches import BatchFacts, RecentBatches
    from tidemill.ledger.ledger import Ledger
    from tidemill.log.interface import Log
    from tidemill.project.project import Project

_ASKING = 0.12
"""Seconds that one request may spend on asking the log where it ended at past moments."""

_CLOCKS_DIFFER = timedelta(minutes=5)
"""How far the clocks of Airflow's database and of a worker may be apart."""

_REMEMBERED = 50_000
"""The most answers of the log that are kept."""


class Sight:
    """A pipeline of a project: its declaration, its newest batches, and where its topics ended at past moments.

    Each request works on the generation that is published then: a rebuild may have published another one since.
    """

    def __init__(self, project: Project, name: str) -> None:
        self.loaded, self.name = project, name
        self._lock = Lock()
        self._recent: RecentBatches | None = None
        self._generation = 0
        self._ends: dict[tuple[str, int, datetime], int] = {}

    @property
    def project(self) -> Project:
        """The project, on the generation that is published now."""
        number = self.loaded.generations.current(self.name)
        return self.loaded.of_generation(self.name, number)

    def flow(self) -> Flow:
        """The declaration, bound to its contracts.

        Raises:
            DeclarationError: it does not fit its contracts.
        """
        return self.loaded.pipeline(self.name)

    def ledger(self) -> Ledger:
        """A ledger of its own for one request: others may be reading the one that is kept."""
        return self.project.ledger(self.name)

    def recent(self, last: int) -> tuple[View, Sequence[BatchFacts]]:
        """The present view, and the newest `last` batches, newest first.

        Raises:
            LedgerDamaged: the ledger cannot be read.
        """
        from tidemill.inspect.recent_batches import RecentBatches

        with self._lock:
            number = self.loaded.generations.current(self.name)
            if self._recent is None or number != self._generation:
                self._recent = RecentBatches(self.loaded.of_generation(self.name, number).ledger(self.name))
                self._generation = number
            return self._recent.look(last)

    def of_run(self, task: AirflowTask, run: Run | None, most: int) -> Sequence[BatchFacts]:
        """The batches that a run executed, newest first, among the `most` that committed while it ran.

        Of a run that Airflow does not know, they are looked for among the newest of the pipeline.

        Raises:
            LedgerDamaged: the ledger cannot be read.
        """
        from tidemill.inspect.recent_batches import batches_between

        _, recent = self.recent(1 if run is not None and run.due is not None else most)
        found = {batch.batch_id: batch for batch in recent}
        if run is not None and run.due is not None:
            until = (run.ended or datetime.now(UTC)) + _CLOCKS_DIFFER
            between = batches_between(self.ledger(), run.due - _CLOCKS_DIFFER, until, most=most)
            found |= {batch.batch_id: batch for batch in between}
        return [b for _, b in sorted(found.items(), reverse=True) if task_of(b.executor.identity) == task]

    def lags(self, batches: Sequence[BatchFacts]) -> list[int | None]:
        """How many records were not committed right after each commit; None where it is not known.

        The log is asked for at most a moment in each request, and remembers what it said: past ends do not change.
        """
        log, until = self.loaded.log(), monotonic() + _ASKING
        if len(self._ends) > _REMEMBERED:
            self._ends.clear()
        return [self._lag(log, batch, until) for batch in batches]

    def _lag(self, log: Log, batch: BatchFacts, until: float) -> int | None:
        if batch.at is None or not batch.lag_from:
            return None
        total = 0
        for topic, offsets in batch.lag_from.items():
            for partition, offset in offsets.items():
                key = (topic, partition, batch.at)
                if key not in self._ends and monotonic() > until:
                    return None
                try:
                    self._ends[key] = self._ends.get(key) or log.offset_at(topic, partition, batch.at)
                except LogError:
                    return None
                total += max(self._ends[key] - offset, 0)
        return total
