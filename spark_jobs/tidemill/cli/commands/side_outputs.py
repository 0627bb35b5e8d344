"""`tidemill late` and `tidemill quarantine`: show late and rejected records, and repair them."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import (
    BatchRecords,
    By,
    DryRun,
    Mixed,
    OfBatches,
    OfOffset,
    OfPartition,
    OfTopic,
    Since,
    Until,
    Why,
    execute,
    looked_at,
)
from tidemill.cli.output import MOST, AsJson, PipelineName, console
from tidemill.cli.views.late_windows import show_windows
from tidemill.cli.views.reject_groups import show_groups
from tidemill.cli.views.side_outputs import show_records, show_repair
from tidemill.core.plan.amendments import SideOutput
from tidemill.core.repair.selection import selection

if TYPE_CHECKING:
    from tidemill.core.repair.side_outputs import Selection

late = typer.Typer(
    no_args_is_help=True, help="Late records, which came after all of their windows had closed: show and admit them."
)
quarantine = typer.Typer(no_args_is_help=True, help="Rejected records: look at them, replay them after a fix.")

OfReason = Annotated[
    str | None,
    typer.Option("--rule", metavar="TEXT", help="Only records rejected for a reason that contains this text."),
]
OfTable = Annotated[
    str | None, typer.Option("--table", metavar="TABLE", help="Only what this published table refused.")
]
ByBatch = Annotated[bool, typer.Option("--by-batch", help="Count each batch separately.")]
Full = Annotated[bool, typer.Option("--full", help="Show whole values; otherwise they are cut.")]
FullInDryRun = Annotated[bool, typer.Option("--full", help="With --dry-run: show whole values.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=MOST, metavar="N", help="Show at most N.")]


@late.command("ls")
def late_ls(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    offset: OfOffset = None,
    since: Since = None,
    until: Until = None,
    table: OfTable = None,
    limit: Most = 50,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """List late rows: a record once for each table that refused it.

    The count `late` of a batch is smaller if another table took the record. `tidemill late windows` counts by window.
    """
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=offset, since=since, until=until, table=table
    )
    whole = None if full else "--full"
    show_records(looked_at(ctx, pipeline), SideOutput.LATE, wanted, limit=limit, as_json=as_json, whole=whole)


@late.command("windows")
def late_windows(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    since: Since = None,
    until: Until = None,
    table: OfTable = None,
    limit: Most = 50,
    as_json: AsJson = False,
) -> None:
    """Count late records by table and window, with the first and the last batch of each.

    A record counts once for each table that refused it: with sliding windows in its last window, with sessions in a
    session of its own. "watermark up to" is the greatest watermark that one of the records was late for. Of sliding
    windows, "partly late" counts records that a window missed when they came, while later ones took them. The late
    table does not have these, and only `--batch` and `--table` choose among them.
    """
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=None, since=since, until=until, table=table
    )
    show_windows(looked_at(ctx, pipeline), wanted, limit=limit, as_json=as_json)


@late.command("admit")
def late_admit(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    offset: OfOffset = None,
    since: Since = None,
    until: Until = None,
    table: OfTable = None,
    dry_run: DryRun = False,
    full: FullInDryRun = False,
    batch_records: BatchRecords = None,
    mixed: Mixed = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Add late records to the windows that refused them, and publish only these windows again."""
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=offset, since=since, until=until, table=table
    )
    _repair(ctx, pipeline, SideOutput.LATE, wanted, dry_run, full, batch_records, mixed, by, why, as_json)


@quarantine.command("ls")
def quarantine_ls(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    since: Since = None,
    until: Until = None,
    rule: OfReason = None,
    by_batch: ByBatch = False,
    as_json: AsJson = False,
) -> None:
    """Count rejected records by topic and reason, with the first and the last batch of each."""
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=None, since=since, until=until, reason=rule
    )
    show_groups(looked_at(ctx, pipeline), wanted, by_batch=by_batch, as_json=as_json)


@quarantine.command("show")
def quarantine_show(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    offset: OfOffset = None,
    since: Since = None,
    until: Until = None,
    rule: OfReason = None,
    limit: Most = 10,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Show rejected records with their reasons and values."""
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=offset, since=since, until=until, reason=rule
    )
    whole = None if full else "--full"
    show_records(looked_at(ctx, pipeline), SideOutput.QUARANTINE, wanted, limit=limit, as_json=as_json, whole=whole)


@quarantine.command("replay")
def quarantine_replay(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: OfBatches = None,
    topic: OfTopic = None,
    partition: OfPartition = None,
    offset: OfOffset = None,
    since: Since = None,
    until: Until = None,
    rule: OfReason = None,
    dry_run: DryRun = False,
    full: FullInDryRun = False,
    batch_records: BatchRecords = None,
    mixed: Mixed = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Send rejected records through the pipeline again. What still fails returns with its new reasons."""
    wanted = selection(
        batch=batch, topic=topic, partition=partition, offset=offset, since=since, until=until, reason=rule
    )
    _repair(ctx, pipeline, SideOutput.QUARANTINE, wanted, dry_run, full, batch_records, mixed, by, why, as_json)


def _repair(
    ctx: typer.Context,
    pipeline: str,
    output: SideOutput,
    wanted: Selection,
    dry_run: bool,
    full: bool,
    most: int | None,
    mixed: bool,
    by: str | None,
    why: str,
    as_json: bool,
) -> None:
    if dry_run:
        shown = looked_at(ctx, pipeline, most=most)
        show_repair(shown, output, wanted, mixed=mixed, full=full, as_json=as_json)
        return
    from tidemill.inspect.repairs import about_firings
    from tidemill.repair.named import check_something
    from tidemill.repair.repair import repair

    looked = looked_at(ctx, pipeline)
    check_something(looked, output, wanted)
    if not as_json and (note := about_firings(looked, output, wanted)):
        console().print(note)
    nothing = f"nothing to do: no such record is there; see `tidemill {output.value} ls {pipeline}`"
    execute(
        ctx,
        pipeline,
        lambda amendment: repair(amendment, output, wanted, mixed=mixed),
        by=by,
        why=why,
        as_json=as_json,
        most=most,
        nothing=nothing,
    )
