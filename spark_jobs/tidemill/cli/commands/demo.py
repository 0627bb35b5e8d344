"""`tidemill demo`: all of Tidemill in a minute, with proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemill.core.errors import InputError
from tidemill.core.exit_code import ExitCode


def demo(
    ctx: typer.Context,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Your own access log, instead of generated requests.")
    ] = None,
    records: Annotated[int, typer.Option(min=1, metavar="N", help="How many requests to generate.")] = 200_000,
    seed: Annotated[int, typer.Option(metavar="N", help="The seed of the generated requests.")] = 7,
    folder: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to work; an earlier demo in this folder is removed.")
    ] = Path("build/demo"),
) -> None:
    """Fill a log, run a pipeline batch by batch, kill a batch, and prove that nothing was lost or doubled."""
    if log is not None and not log.is_file():
        raise InputError(f"{log}: there is no such file", fix="name an access log")
    from tidemill.cli.spark import spark_session
    from tidemill.cli.views.demo import stage_on_console
    from tidemill.demo.site import source_of
    from tidemill.demo.story import Script, tell
    from tidemill.demo.traffic import Traffic

    source = source_of(ctx.find_root().params.get("project"))
    script = Script(
        folder=folder.resolve(), source=source, traffic=Traffic(seed=seed, records=records), file=log and log.resolve()
    )
    with stage_on_console() as stage:
        ending = tell(script, stage, lambda project: spark_session(project, ctx.find_root().obj))
        stage.ends(ending)
    if not ending.proven:
        raise typer.Exit(ExitCode.DIFFERENT)
