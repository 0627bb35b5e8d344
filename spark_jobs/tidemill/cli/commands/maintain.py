"""`tidemill maintain`: fold, forget and vacuum, within what open plans and rewinds need."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import DryRun, an_amendment
from tidemill.cli.output import AsJson, console, end_with, grid, of_each, open_project
from tidemill.cli.views.log import print_json

if TYPE_CHECKING:
    from tidemill.engine.spark.session import Spark
    from tidemill.maintain.task import MaintenanceTask
    from tidemill.project.project import Project


def maintain(
    ctx: typer.Context,
    pipeline: Annotated[str | None, typer.Argument(metavar="[PIPELINE]", help="The pipeline. Default: all.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help='How far back you may want to go, for example "7 days". Default: the project\'s setting.',
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make tables and ledgers small again. Batches may run at the same time."""
    from tidemill.core.time.times import duration, show_duration
    from tidemill.maintain.maintenance import AT_LEAST, goes_back_to
    from tidemill.maintain.maintenance import maintain as tasks

    project = open_project(ctx)
    period = project.settings.keep if keep is None else duration(keep, "--keep")
    table, kept = grid("pipeline", "table", "", "count", numbers=("count",)), list[str]()

    def tidy(name: str) -> None:
        folded = _folded(ctx, project, name, dry_run=dry_run, as_json=as_json)
        for each in (folded, *tasks(project, name, keep=period, now=datetime.now(UTC), dry_run=dry_run)):
            if as_json:
                print_json({"pipeline": name, "table": each.table, "what": each.what, "count": each.count})
            table.add_row(name, each.table, each.what, f"{each.count:,}")
        if (batch := goes_back_to(project, name, keep=period, now=datetime.now(UTC))) is not None:
            length = show_duration(period)
            kept.append(
                f"{name}: what a rewind to batch {batch} needs stays (the last {length}, and {AT_LEAST} batches)"
            )

    faults = of_each(project, pipeline, tidy)
    if not as_json and table.row_count:
        console().print(table)
        console().print("\n".join(kept), soft_wrap=True)
    if not as_json and dry_run:
        console().print("nothing was done: this is a dry run")
    end_with(faults)


def _folded(ctx: typer.Context, project: Project, pipeline: str, *, dry_run: bool, as_json: bool) -> MaintenanceTask:
    """Slices become one where that is worth it; Spark starts only then. A batch that runs goes first."""
    from tidemill.cli.spark import say_start, started_spark
    from tidemill.core.errors import Busy
    from tidemill.maintain.state_compaction import due, fold
    from tidemill.maintain.task import MaintenanceTask

    amendment = an_amendment(project, pipeline, by=None, why="maintenance")
    count = len(due(amendment, amendment.ledger.view()))
    if count and not dry_run:
        count = 0
        with ExitStack() as stack, suppress(Busy):
            opened = partial(started_spark, project, ctx.find_root().obj, pipeline=pipeline)

            # Open the session only when the job holds the claim: an earlier one would interrupt a batch on a Connect
            # server.
            @cache
            def start() -> Spark:
                say_start(ctx, pipeline, as_json=as_json)
                return stack.enter_context(opened())

            amendment.session = start
            for _ in fold(amendment):
                count += 1
    return MaintenanceTask(table=f"state of {pipeline}", what="groups of slices folded into one", count=count)
