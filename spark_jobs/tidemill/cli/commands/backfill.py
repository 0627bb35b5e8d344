"""`tidemill backfill`, `rewind` and `rebuild`: read offsets again, go back to a position, build all again."""

# A command's parameters are its options, so there may be many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import BatchRecords, By, DryRun, Why, execute, looked_at
from tidemill.cli.output import MOST, AsJson, PipelineName, console
from tidemill.cli.views.log import print_json
from tidemill.core.errors import ConfigError
from tidemill.core.protocol.codec import encode
from tidemill.core.repair.selection import PLACES, wanted
from tidemill.core.time.times import moment
from tidemill.inspect.lines import NOTHING_DONE, backfill_lines, range_texts, rewind_lines, undone_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidemill.core.protocol.events import Committed
    from tidemill.core.time.panes import Window
    from tidemill.repair.backfill import Preview
    from tidemill.repair.job import AmendmentJob
    from tidemill.repair.rewind import TakenBack


def backfill(
    ctx: typer.Context,
    pipeline: PipelineName,
    from_offsets: Annotated[
        str | None, typer.Option(metavar=PLACES, help="Start at these offsets; leave out other partitions.")
    ] = None,
    to_offsets: Annotated[
        str | None, typer.Option(metavar=PLACES, help="Stop before these offsets. Default: the last commit.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Start with the records that arrived in the log at this time.")
    ] = None,
    to_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop before the records that arrived in the log at this time.")
    ] = None,
    windows: Annotated[
        str | None, typer.Option(metavar="FROM/TO", help="Compute the windows over these event times; ISO 8601.")
    ] = None,
    dry_run: DryRun = False,
    batch_records: BatchRecords = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the backfill that is not complete.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Drop the backfill that is not complete; readers never saw anything of it.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue without records that the log no longer holds.")
    ] = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Read past offsets again and replace what was computed from them.

    Live batches run in between; a backfill of a table of firings is one batch, and they wait for it.
    """
    from tidemill.repair import backfill as amend

    parts = {
        "from_offsets": from_offsets,
        "to_offsets": to_offsets,
        "from_time": from_time,
        "to_time": to_time,
        "windows": windows,
    }
    if resume + cancel + any(p is not None for p in parts.values()) != 1:
        raise ConfigError(
            "a backfill wants offsets, times or windows, or --resume, or --cancel",
            fix=f"for example `tidemill backfill {pipeline} --from-time 2026-03-01 --to-time 2026-03-02 --dry-run`",
        )
    if dry_run and (resume or cancel):
        raise ConfigError(
            "--dry-run shows what a backfill would do before it begins; --resume and --cancel are about one that has",
            fix=f"`tidemill status {pipeline}` shows how much of it is left",
        )
    if dry_run:
        amendment = looked_at(ctx, pipeline)
        amendment.most = batch_records
        _show(amend.preview(amendment, wanted(**parts), accept_loss=accept_loss), as_json=as_json)
        return

    def batches(amendment: AmendmentJob) -> Iterator[Committed]:
        if resume or cancel:
            return amend.resume(amendment) if resume else amend.cancel(amendment)
        return amend.backfill(amendment, wanted(**parts), accept_loss=accept_loss)

    why = why or ("records that are gone are done without" if accept_loss else "")
    execute(ctx, pipeline, batches, by=by, why=why, as_json=as_json, most=batch_records)


def rewind(
    ctx: typer.Context,
    pipeline: PipelineName,
    to: Annotated[
        int,
        typer.Option(
            "--to", min=0, max=MOST, metavar="BATCH", help="The batch to return to; 0 means before the first."
        ),
    ],
    dry_run: DryRun = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Return offsets, watermark, state and tables to what they were after a batch. Later records run again."""
    from tidemill.repair import rewind as amend

    if dry_run:
        found = amend.preview(looked_at(ctx, pipeline), to)
        _show_rewind(found, as_json=as_json)
        return
    if not as_json:
        _print(undone_lines(amend.undone(looked_at(ctx, pipeline).ledger.view().position, to)))
    execute(ctx, pipeline, lambda amendment: amend.rewind(amendment, to), by=by, why=why, as_json=as_json)


def rebuild(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch_records: BatchRecords = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Drop the rebuild that is not complete; readers never saw anything of it.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Continue without records that the log no longer holds.")
    ] = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Build state and tables again from the log, beside the published ones, and switch. After a kill, run it again."""
    from tidemill.repair.rebuild import rebuild as amend

    if cancel:
        _drop_rebuild(ctx, pipeline, by=by, why=why, as_json=as_json)
        return
    why = why or ("records that are gone are done without" if accept_loss else "")
    batches = partial(amend, accept_loss=accept_loss)
    execute(ctx, pipeline, batches, by=by, why=why, as_json=as_json, most=batch_records)


def _drop_rebuild(ctx: typer.Context, pipeline: str, *, by: str | None, why: str, as_json: bool) -> None:
    from tidemill.repair.unfinished import cancel

    numbers = cancel(looked_at(ctx, pipeline, by=by, why=why))
    if as_json:
        print_json({"pipeline": pipeline, "dropped": numbers})
        return
    told = ", ".join(map(str, numbers))
    typer.echo(f"{pipeline}: the rebuild was dropped (generation {told}); the published tables are as they were")


def _show_rewind(found: TakenBack, *, as_json: bool) -> None:
    ranges = [str(r) for r in found.ranges]
    if as_json:
        decisions = {table: encode(since) for table, since in found.decisions.items()}
        print_json(
            {
                "batches": list(found.batches),
                "read_again": ranges,
                "versions": dict(found.versions),
                "undoes": {batch: {"kind": e.kind, "by": e.by, "why": e.why} for batch, e in found.asked.items()},
                "decisions": decisions,
            }
        )
        return
    _print((*rewind_lines(found), NOTHING_DONE))


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        console().print(line, soft_wrap=True)


def _show(found: Preview, *, as_json: bool) -> None:
    if as_json:
        print_json(_preview_json(found))
        return
    _print((*backfill_lines(found), NOTHING_DONE))


def _preview_json(found: Preview) -> dict[str, object]:
    windows = {
        table: [(moment(w.start).isoformat(), moment(w.end).isoformat()) for w in stretches]
        for table, stretches in found.windows.items()
    }
    return {
        "ranges": range_texts(found),
        "asked": found.asked,
        "records": found.records,
        "batches": found.batches,
        "supersedes": [c.batch_id for c in found.covers],
        "windows": windows,
        "windows_left": dict(found.left),
        "windows_unknown": list(found.unknown),
        "seconds": round(found.seconds, 1),
        "late": {table: _late_json(*each) for table, each in found.late.items()},
        "rejected": found.rejected,
        "firings_from": None if found.replaying is None else found.replaying.replay.since,
    }


def _late_json(records: int, stretch: Window | None) -> dict[str, object]:
    bounds = [] if stretch is None else [moment(stretch.start).isoformat(), moment(stretch.end).isoformat()]
    return {"records": records, "windows": bounds}
