"""Executes batches of a pipeline, one after the other, in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidemill.core.bind.flow import Flow
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Committed
from tidemill.ledger.process import this_process
from tidemill.project.project import Project
from tidemill.run.batch import NothingToDo, run_batch
from tidemill.run.claiming import Request
from tidemill.run.watching import Watcher

if TYPE_CHECKING:
    from tidemill.ledger.ledger import Ledger
    from tidemill.run.sessions import Opens


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How many batches to execute, and how large. `drain` says that the input has ended.

    `limit` is the most records per batch; None means the project's limit. `most` is the most batches; None means until
    nothing is left to do. `from_now` is a person's decision that a change in the meaning of numbers applies from the
    next batch on.
    """

    limit: int | None = None
    drain: bool = False
    most: int | None = 1
    from_now: Reason | None = None


def run_batches(  # noqa: PLR0913  what to execute, as whom, where, and who is told
    project: Project,
    pipeline: str,
    order: Order,
    *,
    identity: str | None = None,
    session: Opens | None = None,
    watcher: Watcher | None = None,
    ledger: Ledger | None = None,
) -> Iterator[Committed]:
    """Execute batches and yield each commit, until the ordered number is reached or nothing is left to do.

    The batches share one view of the ledger and one session, which is opened when there is work. A run with the same
    `identity` as an earlier run continues its open batch at once. `watcher` is told how far each batch is. A caller may
    keep `ledger` for many runs of one pipeline.

    Raises:
        TidemillError: a batch did not commit; the next run continues it.
    """
    ledger, executor = ledger or project.ledger(pipeline), this_process(identity)
    limit = project.limit(order.limit)
    left = order.most
    while left is None or left > 0:
        request = Request(
            executor=executor,
            clock=datetime.now(UTC),
            limit=limit,
            drain=order.drain,
            from_now=order.from_now,
            watcher=watcher or Watcher(),
        )
        outcome = run_batch(project, pipeline, request, session=session, ledger=ledger)
        if isinstance(outcome, NothingToDo):
            return
        yield outcome
        left = None if left is None else left - 1


def warm_up_audit(flow: Flow) -> None:
    """Load what the audit of a pipeline needs, in the background, while Spark starts."""
    threading.Thread(target=_warm_up, args=(flow,), daemon=True).start()


def _warm_up(flow: Flow) -> None:
    from tidemill.contracts.audit import warm_up  # noqa: PLC0415

    # If something is wrong here, the audit itself reports it.
    with suppress(Exception):
        for sink in flow.sinks:
            warm_up(sink.contract)
