"""`tidemill run`: execute batches of a pipeline, here and now."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import By, needed_reason
from tidemill.cli.executing import Starter, show_batches
from tidemill.cli.following import stopped_by_signals
from tidemill.cli.output import MOST, AsJson, PipelineName, open_project
from tidemill.core.errors import ConfigError
from tidemill.core.exit_code import ExitCode
from tidemill.run.sessions import Opens

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemill.core.protocol.events import Committed
    from tidemill.engine.spark.session import Spark
    from tidemill.project.project import Project

WhyFromNow = Annotated[
    str, typer.Option("--why", metavar="TEXT", help="Your reason, needed with --from-now; the ledger keeps it.")
]


def run(
    ctx: typer.Context,
    pipeline: PipelineName,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Continue until nothing is left to do, and exit with 0.")
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Stay, and run a batch each time that the pipeline's `every` has passed, until stopped."
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, metavar="N", help="The most records in a batch. Default: the project's setting."),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option("--drain", help="The input has ended for good: all windows close, and later records are late."),
    ] = False,
    batches: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST, metavar="N", help="The most batches. Default: one, or no bound with --until-caught-up."
        ),
    ] = None,
    from_now: Annotated[
        bool,
        typer.Option(
            "--from-now", help="Accept that numbers mean something else now: the new meaning holds from this batch on."
        ),
    ] = False,
    by: By = None,
    why: WhyFromNow = "",
    as_json: AsJson = False,
) -> None:
    """Run the open batch of a pipeline, or the next one."""
    most = batches if batches or until_caught_up else 1
    reason = needed_reason(by, why) if from_now or by or why else None
    if reason is not None and not from_now:
        raise ConfigError("--by and --why belong to a decision", fix="leave them out, or add --from-now")
    if follow:
        ends = {"--until-caught-up": until_caught_up, "--drain": drain, "--batches": batches, "--from-now": from_now}
        _follow(ctx, pipeline, limit, [name for name, given in ends.items() if given], as_json=as_json)
        return

    def ordered(project: Project, start: Opens) -> Iterator[Committed]:
        from tidemill.run.loop import Order, run_batches

        return run_batches(
            project, pipeline, Order(limit=limit, drain=drain, most=most, from_now=reason), session=start
        )

    from tidemill.inspect.status import what_waits

    def ended(count: int) -> str:
        if count == most:
            return "stopped"
        waiting = what_waits(open_project(ctx), pipeline)
        said = "caught up" if count or until_caught_up else "nothing to do"
        return f"{said}; {waiting}" if waiting else said

    count = show_batches(ctx, pipeline, ordered, as_json=as_json, ended=ended)
    raise typer.Exit(ExitCode.DONE if count or until_caught_up else ExitCode.NOTHING_TO_DO)


def _follow(ctx: typer.Context, pipeline: str, limit: int | None, others: Sequence[str], *, as_json: bool) -> None:
    """Run batches until a signal comes.

    Raises:
        ConfigError: other options say when to end, or decide something.
    """
    if others:
        raise ConfigError(
            f"--follow runs batches until it is stopped, found {' and '.join(others)} as well",
            fix=f"leave out --follow, or {' and '.join(others)}",
        )
    with stopped_by_signals(as_json=as_json) as follower:

        def followed(project: Project, start: Starter) -> Iterator[Committed]:
            from tidemill.run.following import follow

            def opened() -> Spark | SparkSession:
                found = start()
                follower.listen()
                return found

            follower.forget = start.forget
            return follow(project, pipeline, follower, limit=limit, session=opened)

        show_batches(ctx, pipeline, followed, as_json=as_json, ended=lambda _: "stopped")
