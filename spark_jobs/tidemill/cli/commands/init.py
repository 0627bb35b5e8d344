"""`tidemill init`: create a project that runs at once."""

from __future__ import annotations

from typing import Annotated

import typer

from tidemill.cli.output import console


def init(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="The folder to create. Its name becomes the project's name.")
    ],
) -> None:
    """Create a project that runs at once: a pipeline, contracts, a DAG, tests, and a README with the commands."""
    from tidemill.project.template import make_project, project_around

    made = make_project(folder)
    out = console()
    for path in made:
        out.print(f"made {path}", highlight=False, markup=False)
    if around := project_around(folder):
        typer.echo(
            f"warning: {folder} is inside the project {around}, but a project of its own: commands typed in {folder} "
            f"do not see the pipelines of {around}. If you do not want this, move {folder} elsewhere",
            err=True,
        )
    out.print(f"next: cd {folder}, and what its README.md says", highlight=False, markup=False)
