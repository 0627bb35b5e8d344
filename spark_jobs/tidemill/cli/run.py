"""`tidemill run`: execute batches of a pipeline, here and now."""

# A command's parameters are its options, however many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.batch_lines import JsonLines, Progress, batch_lines
from tidemill.cli.exit_codes import ExitCode
from tidemill.cli.output import AsJson, PipelineName, open_project
from tidemill.core.errors import TidemillError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.project import Project
    from tidemill.running import Order


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
    from tidemill.running import Order

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
    from tidemill.cli.spark import spark_session
    from tidemill.running import run_batches

    project.pipeline(pipeline)
    progress.phase(f"{pipeline}: reading the ledger")
    count = 0
    with ExitStack() as stack:
        start = _starter(project, pipeline, progress, partial(spark_session, project, session), stack)
        for commit in run_batches(project, pipeline, order, session=start):
            count += 1
            progress.committed(commit)
            progress.phase(f"{pipeline}: batch {commit.batch_id + 1}")
    return count


def _starter(
    project: Project,
    pipeline: str,
    progress: Progress,
    opened: Callable[[], AbstractContextManager[SparkSession]],
    stack: ExitStack,
) -> Callable[[], SparkSession]:
    """Starts Spark when the first batch needs it, and meanwhile loads what the audit will need."""
    from tidemill.running import warm_up_audit

    @cache
    def start() -> SparkSession:
        progress.phase(f"{pipeline}: starting Spark")
        warm_up_audit(project.pipeline(pipeline))
        session = stack.enter_context(opened())
        progress.phase(f"{pipeline}: the first batch, which warms Spark up")
        return session

    return start
