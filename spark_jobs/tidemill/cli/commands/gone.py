"""`tidemill gone`: partitions that the log has lost and that batches leave out from now on."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from typing import Annotated

import typer

from tidemill.cli.amending import By, Why, execute
from tidemill.cli.output import AsJson, PipelineName
from tidemill.core.repair.selection import place_of


def gone(
    ctx: typer.Context,
    pipeline: PipelineName,
    partitions: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC-PARTITION...", help="Partitions that were read before and are missing now."),
    ],
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Continue without partitions that disappeared from the log. If one returns, reading goes on where it stopped."""
    from tidemill.repair.gone import declare_gone

    places = [place_of(text) for text in partitions]
    execute(ctx, pipeline, lambda amendment: declare_gone(amendment, places), by=by, why=why, as_json=as_json)
