"""`tidemill run`: execute batches of a pipeline, here and now."""

# A command's parameters are its options, however many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.batch_lines import JsonLines, Progress, batch_lines
from tidemill.cli.exit_codes import ExitCode
from tidemill.cli.output import AsJson, PipelineName, open_project
from tidemill.core.errors import TidemillError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.core.events import Committed
    from tidemill.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How many batches to execute, and of what size. `most` None: until nothing is left to do."""

    limit: int | None = None
    drain: bool = False
    most: int | None = 1


def run(
    ctx: typer.Context,
    pipeline: PipelineName,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Go on until nothing is left to do; then that is no failure.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many records in a batch; else the project's.")
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="The input has ended, for good: all windows close, later records are late.")
    ] = False,
    batches: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="At most so many batches; one without --until-caught-up.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Execute the open batch of a pipeline, or the next one."""
    most = batches if batches or until_caught_up else 1
    order = Order(limit=limit, drain=drain, most=most)
    project = open_project(ctx)
    lines: AbstractContextManager[Progress] = nullcontext(JsonLines()) if as_json else batch_lines()
    with lines as progress:
        try:
            count = _execute(project, pipeline, order, progress, session=ctx.find_root().obj)
        except TidemillError as error:
            _tell(progress, error)
            raise
        done = bool(count or until_caught_up)
        ended = "stopped" if count == most else ("caught up" if done else "nothing to do")
        progress.ended(ended, count)
    raise typer.Exit(ExitCode.DONE if done else ExitCode.NOTHING_TO_DO)


def _tell(progress: Progress, error: TidemillError) -> None:
    if isinstance(progress, JsonLines):
        from tidemill.cli.failures import failed

        progress.event(failed(error))


def _execute(
    project: Project,
    pipeline: str,
    order: Order,
    progress: Progress,
    *,
    session: Callable[[Project], SparkSession] | None,
) -> int:
    """How many batches committed."""
    project.pipeline(pipeline)
    progress.phase(f"{pipeline}: reading the ledger")
    starter = _Starter(project, pipeline, progress, session)
    count = 0
    try:
        for commit in _commits(project, pipeline, order, starter.session):
            count += 1
            progress.committed(commit)
            progress.phase(f"{pipeline}: batch {commit.batch_id + 1}")
    finally:
        starter.stop()
    return count


def _commits(project: Project, pipeline: str, order: Order, session: Callable[[], SparkSession]) -> Iterator[Committed]:
    """Batches as they commit, until there were as many as ordered or nothing is left to do."""
    from datetime import UTC, datetime

    from tidemill.batch import NothingToDo, run_batch
    from tidemill.claiming import Request
    from tidemill.core.planning import ReadLimit
    from tidemill.ledger.process import this_process

    ledger, executor = project.ledger(pipeline), this_process()
    limit = ReadLimit(order.limit or project.settings.batch_records)
    left = order.most
    while left is None or left > 0:
        request = Request(executor=executor, clock=datetime.now(UTC), limit=limit, drain=order.drain)
        outcome = run_batch(project, pipeline, request, session=session, ledger=ledger)
        if isinstance(outcome, NothingToDo):
            return
        yield outcome
        left = None if left is None else left - 1


class _Starter:
    """Starts Spark when the first batch needs it, and meanwhile loads what the audit will need."""

    def __init__(
        self,
        project: Project,
        pipeline: str,
        progress: Progress,
        given: Callable[[Project], SparkSession] | None,
    ) -> None:
        self._project, self._pipeline, self._progress, self._given = project, pipeline, progress, given
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        """The session, started by the first call."""
        from tidemill.cli.spark import start_spark

        if self._session is None:
            self._progress.phase(f"{self._pipeline}: starting Spark")
            if any(sink.contract.table_rules for sink in self._project.pipeline(self._pipeline).sinks):
                threading.Thread(target=_warm_up, daemon=True).start()
            self._session = (self._given or start_spark)(self._project)
            self._progress.phase(f"{self._pipeline}: the first batch, which warms Spark up")
        return self._session

    def stop(self) -> None:
        """End the session, unless it was given."""
        if self._session is not None and self._given is None:
            # An interrupt may have broken the connection; the JVM ends with this process anyway.
            with suppress(Exception):
                self._session.stop()


def _warm_up() -> None:
    from tidemill.contracts.audit import warm_up

    # Whatever is wrong here, the audit itself will say.
    with suppress(Exception):
        warm_up()
