"""The way from a task to a batch: the only place where the plugin reaches Spark, and only when a task runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidemill.core.events import Committed
from tidemill.project import Project


def batch_runner(
    project: Project, pipeline: str, *, identity: str, max_records: int | None
) -> Callable[[], Committed | None]:
    """A function that executes the next batch and returns its commit, or None when there is nothing to do.

    All calls share one view of the ledger and, in a local session, one Spark. `identity` is that of all tries of a
    task: a retry takes its own open batch over at once.
    """
    from tidemill.running import Order, run_batches

    order = Order(limit=max_records, most=None)
    return partial(next, run_batches(project, pipeline, order, identity=identity), None)
