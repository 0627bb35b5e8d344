"""`tidemill up`, `tidemill down` and `tidemill airflow`: start a local Airflow, and prepare any.

The package `tidemill_airflow` does it, in a process of its own: `tidemill` runs without Airflow.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from tidemill.core.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="The Airflow that starts the batches: prepare it.")

DATABASE = "TIDEMILL_AIRFLOW_DATABASE"
_HOME = typer.Option(metavar="FOLDER", help="Airflow's folder. Default: .tidemill/airflow in the project.")
Home = Annotated[Path | None, _HOME]


def up(  # noqa: PLR0913, PLR0917  each is an option
    ctx: typer.Context,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The port of Airflow's pages on 127.0.0.1.")] = 8080,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Read from a broker of a checkout, not from the project's log.")
    ] = False,
    connect: Annotated[
        bool,
        typer.Option("--connect/--no-connect", help="One Spark for all tasks; else each starts its own."),
    ] = True,
    database: Annotated[
        str | None,
        typer.Option(
            envvar=DATABASE, metavar="URL", help="PostgreSQL for Airflow. Default: a file of SQLite in the home."
        ),
    ] = None,
    generator: Annotated[
        bool | None,
        typer.Option(
            "--generator/--no-generator",
            help="Keep appending made-up requests for page_views. Default: in a checkout of Tidemill.",
        ),
    ] = None,
    rate: Annotated[int, typer.Option(min=1, max=100_000, help="The generator's records a second.")] = 50,
    home: Home = None,
) -> None:
    """Start Airflow and a Spark Connect server for the project, and keep them running until Ctrl-C."""
    chosen = [] if generator is None else ["--generator" if generator else "--no-generator"]
    options = ["--port", str(port), "--rate", str(rate), *chosen]
    options += [*(["--kafka"] if kafka else []), *([] if connect else ["--no-connect"])]
    if database:
        os.environ[DATABASE] = database
    _become(ctx, "up", home, *options)


def down(ctx: typer.Context, home: Home = None) -> None:
    """Stop what `tidemill up` has started, also after its process was killed."""
    _become(ctx, "down", home)


@app.command()
def install(
    ctx: typer.Context,
    home: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Airflow's folder. Default: $AIRFLOW_HOME, or ~/airflow.")
    ] = None,
) -> None:
    """Put the DAG file and the warm path where an Airflow finds them. Files that you changed stay."""
    _become(ctx, "install", home)


def _become(ctx: typer.Context, command: str, home: Path | None, *options: str) -> NoReturn:
    """Turn this process into the one that does it: signals and the exit code are its own.

    Raises:
        ConfigError: Airflow, or the package for it, is not installed.
    """
    missing = [name for name in ("airflow", "tidemill_airflow") if find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"{ctx.command_path}: {' and '.join(missing)} cannot be found by {sys.executable}",
            fix="pip install 'tidemill[airflow]'",
        )
    project = ctx.find_root().params.get("project")
    words = [*(["--project", project] if project else []), *(["--home", str(home)] if home else []), *options]
    sys.stdout.flush()
    # The filter of standard error ends with this process: the next one gets the terminal itself.
    os.dup2(sys.stderr.fileno(), 2)
    os.execv(sys.executable, [sys.executable, "-m", "tidemill_airflow.local", command, *words])
