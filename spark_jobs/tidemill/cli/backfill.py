"""`tidemill backfill` and `tidemill rewind`: offsets of the past again, and positions of the past."""

# A command's parameters are its options, however many.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import BatchRecords, By, DryRun, Why, a_time, execute, looked_at
from tidemill.cli.log_output import print_json
from tidemill.cli.output import AsJson, PipelineName, console, grid
from tidemill.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidemill.amend.backfill import Preview
    from tidemill.amend.errand import Errand
    from tidemill.amend.wanted import Wanted
    from tidemill.core.events import Committed
    from tidemill.core.offsets import TopicPartition

_PLACES = "TOPIC-PARTITION:OFFSET,..."


def backfill(
    ctx: typer.Context,
    pipeline: PipelineName,
    from_offsets: Annotated[
        str | None, typer.Option(metavar=_PLACES, help="From these offsets on; what is not named, from its start.")
    ] = None,
    to_offsets: Annotated[
        str | None, typer.Option(metavar=_PLACES, help="Up to these offsets, without them; else to the last commit.")
    ] = None,
    from_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="From the records that the log took at this time on.")
    ] = None,
    to_time: Annotated[
        str | None, typer.Option(metavar="TIME", help="Up to the records that the log took at this time.")
    ] = None,
    windows: Annotated[
        str | None, typer.Option(metavar="FROM/TO", help="The windows over these event times, FROM/TO in ISO 8601.")
    ] = None,
    dry_run: DryRun = False,
    batch_records: BatchRecords = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the backfill that is not complete.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Give up the backfill that is not complete; nothing of it is seen.")
    ] = False,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Do without records that the log no longer holds.")
    ] = False,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Read offsets of the past again, and replace what was computed from them; live batches go on in between."""
    from tidemill.amend import backfill as amend

    parts = (from_offsets, to_offsets, from_time, to_time, windows)
    if resume + cancel + any(p is not None for p in parts) != 1:
        raise ConfigError(
            "a backfill wants offsets, times or windows, or --resume, or --cancel",
            fix=f"for example `tidemill backfill {pipeline} --from-time 2026-03-01 --to-time 2026-03-02 --dry-run`",
        )
    if dry_run and not (resume or cancel):
        errand = looked_at(ctx, pipeline)
        errand.most = batch_records
        _show(amend.preview(errand, _wanted(*parts), accept_loss=accept_loss), as_json=as_json)
        return

    def batches(errand: Errand) -> Iterator[Committed]:
        if resume or cancel:
            return amend.resume(errand) if resume else amend.give_up(errand)
        return amend.backfill(errand, _wanted(*parts), accept_loss=accept_loss)

    why = why or ("records that are gone are done without" if accept_loss else "")
    execute(ctx, pipeline, batches, by=by, why=why, as_json=as_json, most=batch_records)


def rewind(
    ctx: typer.Context,
    pipeline: PipelineName,
    to: Annotated[int, typer.Option("--to", min=0, metavar="BATCH", help="The batch to go back to; 0: to nothing.")],
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Take offsets, watermark, state and tables back to what they were after a batch; what came later runs again."""
    from tidemill.amend import rewind as amend

    execute(ctx, pipeline, lambda errand: amend.rewind(errand, to), by=by, why=why, as_json=as_json)


def rebuild(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch_records: BatchRecords = None,
    by: By = None,
    why: Why = "",
    as_json: AsJson = False,
) -> None:
    """Make state and tables again from the log, beside the published ones, and switch; killed, it goes on."""
    from tidemill.amend.rebuild import rebuild as amend

    execute(ctx, pipeline, amend, by=by, why=why, as_json=as_json, most=batch_records)


def _wanted(
    from_offsets: str | None, to_offsets: str | None, from_time: str | None, to_time: str | None, windows: str | None
) -> Wanted:
    from tidemill.amend.wanted import OfOffsets, OfTimes, OfWindows

    kinds = [from_offsets or to_offsets, from_time or to_time, windows]
    if sum(k is not None for k in kinds) > 1:
        raise ConfigError("offsets, times and windows cannot be mixed", fix="say one of them")
    if windows is not None:
        since, separator, until = windows.partition("/")
        if not separator:
            raise ConfigError(
                f"--windows: expected FROM/TO, found {windows!r}", fix="for example 2026-03-01/2026-03-02"
            )
        wanted = OfWindows(since=a_time("--windows", since), until=a_time("--windows", until))
        if wanted.since >= wanted.until:
            raise ConfigError(f"--windows: {since} is not before {until}")
        return wanted
    if from_time or to_time:
        return OfTimes(
            since=a_time("--from-time", from_time) if from_time else None,
            until=a_time("--to-time", to_time) if to_time else None,
        )
    return OfOffsets(since=_places("--from-offsets", from_offsets), until=_places("--to-offsets", to_offsets))


def _places(option: str, text: str | None) -> Mapping[TopicPartition, int]:
    from tidemill.core.offsets import TopicPartition

    found = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        place, _, offset = part.strip().rpartition(":")
        topic, _, partition = place.rpartition("-")
        if not topic or not partition.isdigit() or not offset.isdigit():
            raise ConfigError(f"{option}: expected {_PLACES}, found {part!r}", fix="for example web.access-0:1000")
        found[TopicPartition(topic, int(partition))] = int(offset)
    return found


def _show(found: Preview, *, as_json: bool) -> None:
    from tidemill.core.times import moment

    windows = {
        table: [(moment(w.start).isoformat(), moment(w.end).isoformat()) for w in stretches]
        for table, stretches in found.windows.items()
    }
    ranges = [str(r) for items in found.ranges.values() for r in items]
    if as_json:
        print_json(
            {
                "ranges": ranges,
                "records": found.records,
                "batches": found.batches,
                "supersedes": [c.batch_id for c in found.covers],
                "windows": windows,
                "seconds": round(found.seconds, 1),
            }
        )
        return
    out = console()
    out.print(f"reads     {found.records:,} records: {', '.join(ranges)}")
    out.print(f"in        {found.batches} batches, about {found.seconds:.0f} s, live ones in between")
    out.print(
        f"instead of what {len(found.covers)} batches made, {found.covers[0].batch_id} to {found.covers[-1].batch_id}"
    )
    table = grid("table", "windows from", "to")
    for name, stretches in windows.items():
        for since, until in stretches:
            table.add_row(name, since, until)
    out.print(table)
    out.print("nothing was done: this is a dry run")
