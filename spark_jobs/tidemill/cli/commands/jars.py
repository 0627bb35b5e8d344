"""`tidemill jars`: fetch the JVM jars that Spark needs besides its own."""

from __future__ import annotations

from pathlib import Path

import typer

from tidemill.cli.output import AsJson, open_project
from tidemill.cli.views.log import print_json
from tidemill.core.errors import EngineError

app = typer.Typer(no_args_is_help=True, help="The jars that Spark needs: bring them.")


@app.command()
def fetch(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Download the locked jars into the project's folder of jars. Files with the right checksum stay.

    Then archive the classes of Spark's Java beside them, so that Spark starts faster: a minute, once, and 200 MB.
    """
    from tidemill.cli.spark import errors_into
    from tidemill.engine.spark.jars import fetch_jars
    from tidemill.run.archiving import make_archive

    project = open_project(ctx)
    with errors_into(project.folder / ".tidemill" / "spark.log"):
        paths = fetch_jars(Path(project.settings.jars))
    try:
        make_archive(Path(project.settings.jars))
    except EngineError as error:
        typer.echo(f"warning: {error}", err=True)
    if as_json:
        print_json({"folder": project.settings.jars, "jars": [Path(path).name for path in paths]})
    else:
        typer.echo(f"{len(paths)} jars in {project.settings.jars}")
