"""`tidemill maintain`: fold, forget and vacuum, within what open plans and rewinds need."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from tidemill.cli.amending import DryRun
from tidemill.cli.log_output import print_json
from tidemill.cli.output import AsJson, console, grid, open_project


def maintain(
    ctx: typer.Context,
    pipeline: Annotated[str | None, typer.Argument(metavar="[PIPELINE]", help="Only this one; else all.")] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH", help='How far back one may want to go, for example "7 days"; else the project\'s.'
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Make tables and ledgers small again; batches may run meanwhile."""
    from tidemill.core.times import duration
    from tidemill.maintenance import maintain as chores

    project = open_project(ctx)
    period = project.settings.keep if keep is None else duration(keep)
    names = (pipeline,) if pipeline else project.pipeline_names()
    table = grid("pipeline", "table", "", "count", numbers=("count",))
    for name in names:
        for each in chores(project, name, keep=period, now=datetime.now(UTC), dry_run=dry_run):
            if as_json:
                print_json({"pipeline": name, "table": each.table, "what": each.what, "count": each.count})
            table.add_row(name, each.table, each.what, f"{each.count:,}")
    if not as_json:
        console().print(table)
        if dry_run:
            console().print("nothing was done: this is a dry run")
