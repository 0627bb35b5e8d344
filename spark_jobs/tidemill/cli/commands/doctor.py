"""`tidemill doctor`: check that everything is there that batches need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import AsJson, console, grid, open_project, styled
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.errors import TidemillError
from tidemill.core.exit_code import ExitCode

if TYPE_CHECKING:
    from tidemill.cli.views.checked import Checked

_COLOURS = {"ok": "green", "note": "yellow", "problem": "bold red"}


def doctor(
    ctx: typer.Context,
    spark: Annotated[bool, typer.Option(help="Start Spark and ask Airflow, too, which takes some seconds.")] = True,
    as_json: AsJson = False,
) -> None:
    """Check Python, Java, Airflow, jars, Spark, folders, contracts, pipelines and ledgers."""
    if spark:
        from tidemill.cli.spark import say_start

        say_start(ctx, "doctor", as_json=as_json)
    checked = list(_checks(ctx, spark=spark))
    if as_json:
        for each in checked:
            print_json(asdict(each))
    else:
        _show(checked)
    if any(each.state == "problem" for each in checked):
        raise typer.Exit(ExitCode.WRONG)


def _checks(ctx: typer.Context, *, spark: bool) -> Iterator[Checked]:
    from tidemill.cli.commands.doctor_airflow import check_airflow
    from tidemill.cli.commands.doctor_checks import check_machine, check_project
    from tidemill.cli.views.checked import Checked, State

    yield from check_machine()
    try:
        project = open_project(ctx)
    except TidemillError as error:
        yield Checked(name="project", state=State.PROBLEM, found=error.message, fix=error.fix)
        return
    yield from check_airflow(project, ask=spark)
    yield from check_project(project, spark=spark)


def _show(checked: list[Checked]) -> None:
    table = grid("", "", "found", "what to do")
    for each in checked:
        table.add_row(each.name, styled((each.state, _COLOURS[each.state])), each.found, each.fix)
    out = console()
    out.print(table)
    problems = sum(1 for each in checked if each.state == "problem")
    waiting = [each.name for each in checked if each.state == "note" and each.name.startswith("topics of ")]
    if problems:
        out.print(many(problems, "problem"), style="bold red")
    elif waiting:
        out.print(f"no problems, but not all topics are there: see {', '.join(waiting)}", style="yellow")
    else:
        out.print("everything is there", style="green")
