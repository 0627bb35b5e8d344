"""The way from a task to a batch: the only place where the plugin reaches Spark, and only when a task runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from tidemill.core.events import Committed
from tidemill.core.planning import ReadLimit
from tidemill.project import Project


def batch_runner(
    project: Project, pipeline: str, *, identity: str, max_records: int | None
) -> Callable[[], Committed | None]:
    """A function that executes the next batch and returns its commit, or None when there is nothing to do.

    All calls share one view of the ledger and, in a local session, one Spark. `identity` is that of all tries of a
    task: a retry takes its own open batch over at once.
    """
    from tidemill.batch import run_batch
    from tidemill.claiming import Request
    from tidemill.ledger.process import this_process

    ledger, executor = project.ledger(pipeline), this_process(identity)
    limit = ReadLimit(max_records or project.settings.batch_records)

    def run() -> Committed | None:
        request = Request(executor=executor, clock=datetime.now(UTC), limit=limit)
        outcome = run_batch(project, pipeline, request, ledger=ledger)
        return outcome if isinstance(outcome, Committed) else None

    return run
