"""`tidemill plan --dry-run`: what the next batch would read."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.output import MOST, AsJson, PipelineName, console, grid, open_project, show_watermark
from tidemill.cli.views.log import print_json
from tidemill.core.counts import many
from tidemill.core.errors import ConfigError, Incompatible
from tidemill.core.exit_code import ExitCode
from tidemill.core.protocol.summary import watermark_json
from tidemill.core.protocol.view import Fate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidemill.core.bind.flow import Flow
    from tidemill.core.plan.plan import BatchPlan
    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.inspect.table_changes import TableChange
    from tidemill.project.project import Project

_FATES = {
    Fate.CONTINUED: "continued with the plan it has",
    Fate.BLOCKED: "blocked by its audit until the pipeline or a contract is corrected",
    Fate.CANCELLED: "cancelled and planned anew: its declaration or a contract has changed since",
    Fate.REFUSED: "refused: it may be published in part, and its declaration or a contract has changed since",
}


def plan(
    ctx: typer.Context,
    pipeline: PipelineName,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Required; nothing is written.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, max=MOST, metavar="N", help="As for `run`.")] = None,
    drain: Annotated[bool, typer.Option("--drain", help="As for `run`; there it is final.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what the next batch would read, and what readers of published tables would lose: then it ends with 5."""
    if not dry_run:
        raise ConfigError(
            "a plan that is written down must be executed, so only `tidemill run` writes one",
            fix=f"tidemill plan {pipeline} --dry-run, or tidemill run {pipeline}",
        )
    from tidemill.cli.views.table_changes import show_changes
    from tidemill.inspect.table_changes import change_json, table_changes

    project = open_project(ctx)
    flow, view = project.pipeline(pipeline), project.ledger(pipeline).view()
    changes = table_changes(project, flow, view)
    try:
        opened, found = _next(project, flow, view, limit, drain=drain)
    except Incompatible as error:
        _show_refused(pipeline, changes, error, as_json=as_json)
        raise
    fate = _FATES[opened.fate(*flow.hashes)] if opened else None
    if as_json:
        tables = {"tables": [change_json(change) for change in changes]}
        print_json({**_json(pipeline, opened, found), **({"open_batch": fate} if fate else {}), **tables})
    elif found is None:
        typer.echo(f"{pipeline}: nothing to do")
    else:
        _show(opened, found, fate)
    if not as_json:
        show_changes(console(), changes)
    if any(change.is_wrong for change in changes):
        raise typer.Exit(ExitCode.WRONG)
    if found is None:
        raise typer.Exit(ExitCode.NOTHING_TO_DO)


def _show_refused(pipeline: str, changes: Sequence[TableChange], error: Incompatible, *, as_json: bool) -> None:
    """Show what would change in tables, although no batch can be planned."""
    from tidemill.cli.views.table_changes import show_changes
    from tidemill.inspect.table_changes import change_json

    if not as_json:
        show_changes(console(), changes)
        return
    tables = [change_json(change) for change in changes]
    print_json({"pipeline": pipeline, "refused": error.message, "tables": tables})


def _next(
    project: Project, flow: Flow, view: View, limit: int | None, *, drain: bool
) -> tuple[OpenBatch | None, BatchPlan | None]:
    from tidemill.ledger.process import this_process
    from tidemill.run.claiming import Request, next_plan
    from tidemill.run.sources import upstream_of

    if view.open_batch is not None:
        return view.open_batch, view.open_batch.plan
    log, look = project.log(), None
    if flow.spec.max_drift is not None:
        from tidemill.run.looking import look_of

        look = look_of(project, log)
    clock, most = datetime.now(UTC), project.limit(limit)
    request = Request(executor=this_process(), clock=clock, limit=most, drain=drain, look=look)
    return None, next_plan(flow, log, view, request, upstream_of(project))


def _show(opened: OpenBatch | None, found: BatchPlan, fate: str | None) -> None:
    from tidemill.inspect.open_batch import state_text

    out = console()
    if opened is None:
        out.print(f"{found.pipeline}: batch {found.batch_id} would read {many(found.records, 'record')}")
    else:
        out.print(
            f"{found.pipeline}: batch {found.batch_id} is open and would be {fate}; {many(found.records, 'record')}",
        )
        out.print(f"attempt {opened.attempt} by {opened.executor.text}: {state_text(opened)}")
    out.print(f"watermark {show_watermark(found.lateness_watermark)}{'; it drains the input' if found.drains else ''}")
    for behind in found.position.lagging or {}:
        out.print(f"watermark {show_watermark(found.late_until(behind))} of {behind}")
    table = grid(
        "topic", "partition", "from", "until", "records", "", numbers=("partition", "from", "until", "records")
    )
    for name, topic in found.topics.items():
        for item in topic.ranges:
            number = item.topic_partition.partition
            idle = "idle" if number in topic.idle else ""
            span = f"{item.from_offset:,}", f"{item.until_offset:,}", f"{len(item):,}"
            table.add_row(name, str(number), *span, idle)
    out.print(table)


def _json(pipeline: str, opened: OpenBatch | None, found: BatchPlan | None) -> dict[str, object]:
    if found is None:
        return {"pipeline": pipeline, "nothing_to_do": True}
    return {
        "pipeline": pipeline,
        "nothing_to_do": False,
        "batch_id": found.batch_id,
        "open": opened is not None,
        "attempt": 1 if opened is None else opened.attempt + 1,
        "clock": found.clock.isoformat(),
        "watermark": watermark_json(found.lateness_watermark),
        "table_watermarks": {t: watermark_json(found.late_until(t)) for t in found.position.lagging or {}},
        "drain": found.drains,
        "records": found.records,
        "logical_hash": found.logical_hash,
        "ranges": [
            {
                "topic": name,
                "topic_id": topic.topic_id,
                "partition": item.topic_partition.partition,
                "from_offset": item.from_offset,
                "until_offset": item.until_offset,
                "idle": item.topic_partition.partition in topic.idle,
            }
            for name, topic in found.topics.items()
            for item in topic.ranges
        ],
    }
