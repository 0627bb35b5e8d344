"""`tidemill explain`: what a pipeline computes, and how it is executed here."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidemill.cli.output import AsJson, PipelineName, console, grid, open_project, styled
from tidemill.cli.views.log import print_json

if TYPE_CHECKING:
    from rich.console import Console


def explain(
    ctx: typer.Context,
    pipeline: PipelineName,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also Spark SQL's plan of the job that reads and aggregates.")
    ] = False,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="START", help="Explain a number: the start of its window, if it has one."),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="Explain a number: its key, as VALUE or COLUMN=VALUE,...")
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="TABLE", help="Explain a number: its table, if the pipeline publishes several."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the logical and physical plan of a pipeline, or what made one published number."""
    if (window, key, table) != (None, None, None):
        from tidemill.cli.commands.explain_window import show_lineage

        show_lineage(open_project(ctx), pipeline, window=window, key=key, table=table, as_json=as_json)
        return
    from tidemill.cli.views.logical import logical_json
    from tidemill.cli.views.physical import physical_json

    project = open_project(ctx)
    flow = project.pipeline(pipeline)
    logical, physical = logical_json(flow), physical_json(flow, project.settings)
    plans: dict[str, str] = {}
    if spark:
        from tidemill.cli.spark import say_start
        from tidemill.cli.views.spark_plan import spark_plans

        say_start(ctx, pipeline, as_json=as_json)
        plans = spark_plans(project, flow)
    if as_json:
        print_json({**logical, "physical": physical, **({"spark": plans} if spark else {})})
        return
    out = console()
    _show_logical(out, logical)
    _show_physical(out, physical)
    for name, text in plans.items():
        out.print(styled("\n", ("Spark's plan", "bold"), f" of the job for {name}, where Spark SQL aggregates"))
        out.print(text, soft_wrap=True)


def _show_logical(out: Console, logical: dict[str, Any]) -> None:
    out.print(styled((logical["pipeline"], "bold"), f"  logical hash {logical['logical_hash']}\n"))
    out.print("Logical plan", style="bold")
    table = grid("operator", "kind", "fed by", "does")
    for each in logical["operators"]:
        table.add_row(each["name"], each["kind"], ", ".join(each["fed_by"]) or "-", each["does"])
    out.print(table)
    for sink in logical["sinks"]:
        if sink["windowed"]:
            _show_windowed(out, sink)
    rules = grid("contract", "version", "format", "rules")
    for each in logical["contracts"]:
        names = ", ".join([*each["row_rules"], *each["table_rules"]])
        rules.add_row(each["name"], each["version"], each["format"] or "table", names or "-")
    out.print(rules)


def _show_windowed(out: Console, sink: dict[str, Any]) -> None:
    keys = ", ".join(sink["keys"]) or "nothing"
    out.print(
        f"{sink['table']}: {sink['window']}, by {keys}, published {sink['trigger']}, "
        f"allowed lateness {sink['allowed_lateness']}",
    )
    table = grid("column", "partial, per batch and pane", "merge, of panes and batches", "finish")
    for name, each in sink["aggregates"].items():
        table.add_row(name, _columns(each["partial"]), _columns(each["merge"]), each["finish"])
    out.print(table)


def _show_physical(out: Console, physical: dict[str, Any]) -> None:
    out.print("Physical plan", style="bold")
    for name in ("place", "writer", "aggregate", "merge"):
        if physical[name]:
            out.print(f"{name:<11}{physical[name]}")
    table = grid("step", "", "what", "Spark jobs", "writes", numbers=("step",))
    for each in physical["steps"]:
        table.add_row(str(each["step"]), each["name"], each["what"], each["jobs"], each["writes"])
    out.print(table)


def _columns(expressions: dict[str, str]) -> str:
    return "\n".join(text if name == "value" else f"{name}: {text}" for name, text in expressions.items())
