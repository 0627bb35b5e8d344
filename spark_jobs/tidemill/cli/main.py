"""The command `tidemill`. Commands import what they need when they run, so that all but `run` start at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from tidemill.cli.commands import (
    airflow,
    audit,
    backfill,
    bridge,
    contract,
    demo,
    doctor,
    explain,
    gone,
    history,
    init,
    jars,
    log,
    log_delete,
    maintain,
    naming,
    plan,
    run,
    side_outputs,
    status,
    testing,
    verify,
)
from tidemill.cli.failures import DEBUG, Commands, show_defect
from tidemill.cli.native_noise import without_noise

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Exactly-once stream processing in micro-batches, from a log to audited Delta tables.",
)
app.command("init")(init.init)
app.command("doctor")(doctor.doctor)
app.add_typer(log.app, name="log")
log.app.command("bridge")(bridge.bridge)
log.app.command("delete")(log_delete.delete)
app.command("run")(run.run)
app.command("plan")(plan.plan)
app.command("status")(status.status)
app.command("history")(history.history)
app.command("explain")(explain.explain)
app.add_typer(contract.app, name="contract")
app.add_typer(jars.app, name="jars")
app.command("backfill")(backfill.backfill)
app.command("rewind")(backfill.rewind)
app.command("rebuild")(backfill.rebuild)
app.command("gone")(gone.gone)
app.command("rename")(naming.rename)
app.command("adopt")(naming.adopt)
app.add_typer(side_outputs.late, name="late")
app.add_typer(side_outputs.quarantine, name="quarantine")
app.add_typer(audit.app, name="audit")
app.command("test", context_settings={"ignore_unknown_options": True})(testing.run_tests)
app.command("verify")(verify.verify)
app.command("maintain")(maintain.maintain)
app.command("demo")(demo.demo)
app.command("up")(airflow.up)
app.command("down")(airflow.down)
app.add_typer(airflow.app, name="airflow")


def _version(wanted: bool) -> None:
    if wanted:
        from tidemill import __version__

        typer.echo(f"tidemill {__version__}")
        raise typer.Exit


@app.callback()
def options(
    project: Annotated[
        str | None,
        typer.Option(
            envvar="TIDEMILL_PROJECT",
            metavar="FOLDER",
            help="The folder with tidemill.toml. Default: the working directory, or the nearest above that has one.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Exactly-once stream processing in micro-batches, from a log to audited Delta tables."""


def main(arguments: Sequence[str] | None = None, *, session: Any = None) -> None:
    """Run the command that was typed, or `arguments`, and exit with its code.

    `session` is a function that takes a project and returns a Spark session, for callers that have one already.
    """
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal cannot show is printed as its number.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    with nullcontext() if os.environ.get(DEBUG) else without_noise():
        try:
            app(args=None if arguments is None else list(arguments), prog_name="tidemill", obj=session)
        except Exception as error:
            show_defect(error)
            sys.exit(1)


if __name__ == "__main__":
    main()
