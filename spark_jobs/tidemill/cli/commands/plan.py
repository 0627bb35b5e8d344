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

    from rich.console import Console

    from tidemill.core.bind.flow import Flow
    from tidemill.core.log.offsets import OffsetRange
    from tidemill.core.plan.plan import BatchPlan
    from tidemill.core.protocol.view import OpenBatch, View
    from tidemill.inspect.table_changes import TableChange
    from tidemill.project.project import Project

_SHOWN = 20
"""How many ranges are shown of a batch that goes back."""

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
    batch, records = f"{found.pipeline}: batch {found.batch_id}", many(found.records, "record")
    if opened is None:
        out.print(f"{batch} would read {records}")
    else:
        out.print(f"{batch} is open{'' if found.live else f', a {found.kind},'} and would be {fate}; {records}")
        out.print(f"attempt {opened.attempt} by {opened.executor.text}: {state_text(opened)}")
    if found.live:
        _show_watermarks(out, found)
    if found.live or found.records:
        _show_ranges(out, found)


def _show_watermarks(out: Console, found: BatchPlan) -> None:
    out.print(f"watermark {show_watermark(found.lateness_watermark)}{'; it drains the input' if found.drains else ''}")
    for behind in found.position.lagging or {}:
        out.print(f"watermark {show_watermark(found.late_until(behind))} of {behind}")


def _show_ranges(out: Console, found: BatchPlan) -> None:
    table = grid(
        "topic", "partition", "from", "until", "records", "", numbers=("partition", "from", "until", "records")
    )
    ranges = _ranges(found)
    # A live batch has one for each partition; a repair may have thousands.
    shown = ranges if found.live else ranges[:_SHOWN]
    for item, idle in shown:
        place, span = item.topic_partition, (f"{item.from_offset:,}", f"{item.until_offset:,}", f"{len(item):,}")
        table.add_row(place.topic, str(place.partition), *span, "idle" if idle else "")
    out.print(table)
    if len(shown) < len(ranges):
        out.print(f"and {many(len(ranges) - len(shown), 'more range')}; all: --json")


def _ranges(found: BatchPlan) -> Sequence[tuple[OffsetRange, bool]]:
    """What the batch reads, and whether the partition is idle; of a live batch, also the empty ranges."""
    if found.live is None:
        return [(item, False) for ranges in found.reads.values() for item in ranges]
    topics = found.topics.values()
    return [(item, item.topic_partition.partition in topic.idle) for topic in topics for item in topic.ranges]


def _json(pipeline: str, opened: OpenBatch | None, found: BatchPlan | None) -> dict[str, object]:
    if found is None:
        return {"pipeline": pipeline, "nothing_to_do": True}
    lagging = (found.position.lagging or {}) if found.live else {}
    return {
        "pipeline": pipeline,
        "nothing_to_do": False,
        "batch_id": found.batch_id,
        "kind": found.kind,
        "open": opened is not None,
        "attempt": 1 if opened is None else opened.attempt + 1,
        "clock": found.clock.isoformat(),
        "watermark": watermark_json(found.lateness_watermark) if found.live else None,
        "table_watermarks": {t: watermark_json(found.late_until(t)) for t in lagging},
        "drain": found.drains,
        "records": found.records,
        "logical_hash": found.logical_hash,
        "ranges": [
            {
                "topic": item.topic_partition.topic,
                "topic_id": found.topic_id(item.topic_partition.topic),
                "partition": item.topic_partition.partition,
                "from_offset": item.from_offset,
                "until_offset": item.until_offset,
                "idle": idle,
            }
            for item, idle in _ranges(found)
        ],
    }
