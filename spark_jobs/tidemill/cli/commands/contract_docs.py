"""`tidemill contract docs`: pages about the contracts of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidemill.cli.output import open_project
from tidemill.core.counts import many
from tidemill.core.errors import InputError, printable
from tidemill.core.exit_code import ExitCode


def contract_docs(
    ctx: typer.Context,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Where to write. Default: contract_docs in the project."),
    ] = None,
) -> None:
    """Write a page about each contract: its fields, rules, owners, users and last audits.

    The pages need no server and fetch nothing. Exit code 5 says that some contracts cannot be used, and have no page.
    """
    from tidemill.inspect.contract_pages.pages import write_pages

    project = open_project(ctx)
    folder = out or project.folder / "contract_docs"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file", fix="give a folder with --out")
    written = write_pages(project, folder)
    for error in written.errors:
        typer.echo(f"warning: no page: {printable(str(error))}", err=True)
    typer.echo(f"{many(written.contracts, 'contract')}: {written.files[0]}")
    if written.errors:
        raise typer.Exit(ExitCode.WRONG)
