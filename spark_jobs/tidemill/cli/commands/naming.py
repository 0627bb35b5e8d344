"""`tidemill rename` and `tidemill adopt`: change the name of a pipeline, or the owner of a table."""

# A command's parameters are its options, so there may be many.

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import Annotated

import typer

from tidemill.cli.amending import By, Why, an_amendment
from tidemill.cli.output import PipelineName, open_project


def rename(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="Its name now.")],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="Its new name, which the declaration must have from now on.")
    ],
    by: By = None,
    why: Why = "",
) -> None:
    """Rename a pipeline. It keeps its ledger, state and tables."""
    from tidemill.core.plan.amendments import Reason
    from tidemill.project import names

    store = open_project(ctx).generations.store
    names.rename(store, old, new, Reason(by=by or getpass.getuser(), why=why), at=datetime.now(UTC))
    typer.echo(f"{old} is called {new} now; declare it so, and nothing else changes")


def adopt(
    ctx: typer.Context,
    pipeline: PipelineName,
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A table that this pipeline declares and another one owns.")
    ],
    by: By = None,
    why: Why = "",
) -> None:
    """Take over a published table of another pipeline, with its rows."""
    from tidemill.repair import adopt as amend

    project = open_project(ctx)
    before = amend.adopt(an_amendment(project, pipeline, by=by, why=why), table)
    former = f", and to {before} no more" if before else ""
    typer.echo(
        f"{table} belongs to {pipeline} now{former}; its rows are as they were: "
        f"`tidemill rebuild {pipeline}` makes it hold what {pipeline} computes alone"
    )
