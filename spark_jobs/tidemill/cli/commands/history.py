"""`tidemill history`: show what the ledger of a pipeline holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from tidemill.cli.output import MOST, AsJson, PipelineName, balance, console, grid, open_project, show_watermark
from tidemill.cli.views.log import print_json
from tidemill.core.counts import counted
from tidemill.core.errors import ConfigError, LedgerDamaged
from tidemill.core.history.index import asked_of
from tidemill.core.identity.semantics import version_of
from tidemill.core.plan.amendments import Fold, Reason, Redefined, Repair, Rewind, Switch
from tidemill.core.plan.plan import BatchPlan
from tidemill.core.plan.position import Gone
from tidemill.core.plan.slices import BatchRange, show_batches
from tidemill.core.plan.work import BackfillStep, Live, Reading
from tidemill.core.protocol.events import (
    Audited,
    Cancelled,
    Claimed,
    Committed,
    Decided,
    Event,
    Forgotten,
    Planned,
    Superseded,
    told,
)
from tidemill.core.protocol.summary import account_of, broken_rules
from tidemill.core.time.times import show_clock, show_moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidemill.ledger.ledger import Ledger
    from tidemill.ledger.rows import Entry
    from tidemill.project.project import Project


def history(  # noqa: PLR0913, PLR0917  each is an option
    ctx: typer.Context,
    pipeline: PipelineName,
    last: Annotated[
        int, typer.Option(min=0, max=MOST, metavar="N", help="Show the newest N events; 0 shows all.")
    ] = 40,
    batch: Annotated[
        int | None, typer.Option(min=1, max=MOST, metavar="N", help="Show only the events of batch N, however old.")
    ] = None,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show all events, including archived ones and those of generations before a rebuild."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the newest events of a pipeline's ledger, oldest first."""
    project = open_project(ctx)
    ledger = project.ledger(pipeline)
    # The history stays readable even if the pipeline is no longer declared.
    if not ledger.exists:
        project.check_declared(pipeline)
    current = project.generations.of(pipeline)
    shown = _earlier(project, pipeline, current, as_json=as_json) if everything and batch is None else 0
    bounded = batch is None and not everything and last > 0
    parts = iter([ledger.entries(last=last)]) if bounded else _whole(ledger, pipeline, batch)
    for entries in parts:
        if as_json:
            for entry in entries:
                _print_entry(entry, current)
        elif entries:
            _show(entries)
            shown = entries[-1].sequence
            _say_older(entries[0].sequence - 1, bounded=bounded)
    if as_json:
        return
    if not shown:
        typer.echo(f"{pipeline}: no batch was planned yet")
    elif current > 1 and bounded:
        typer.echo(f"this is generation {current}; --all shows earlier ones, too")


def _earlier(project: Project, pipeline: str, current: int, *, as_json: bool) -> int:
    """Show the generations before a rebuild, as far as their ledgers are still there. Return how many are shown."""
    shown = 0
    for number in range(1, current):
        ledger = project.of_generation(pipeline, number).ledger(pipeline)
        try:
            parts = list(ledger.every()) if ledger.exists else []
        except LedgerDamaged as error:
            typer.echo(f"generation {number}: {error.message}", err=True)
            continue
        shown += bool(parts)
        if parts and not as_json:
            typer.echo(f"generation {number}")
        for entries in parts:
            if not as_json:
                _show(entries)
                continue
            for entry in entries:
                _print_entry(entry, number)
    if current > 1 and not as_json:
        typer.echo(f"generation {current}, which is published")
    return shown


def _print_entry(entry: Entry, generation: int) -> None:
    """Print an event of the ledger of this generation as JSON."""
    from tidemill.ledger.rows import as_json as entry_json

    event = entry.event
    takes_over = {"superseded_by": event.generation} if isinstance(event, Superseded) else {}
    print_json({**entry_json(entry), **takes_over, "generation": generation})


def _whole(ledger: Ledger, pipeline: str, batch: int | None) -> Iterator[Sequence[Entry]]:
    """All events of the ledger, or those of one batch."""
    return ledger.every() if batch is None else iter([_of_batch(ledger, pipeline, batch)])


def _of_batch(ledger: Ledger, pipeline: str, batch: int) -> Sequence[Entry]:
    found = ledger.of_batches(BatchRange(batch, batch + 1)) if ledger.exists else ()
    if not found:
        raise ConfigError(
            f"{pipeline}: the ledger has no event of batch {batch}",
            fix=f"`tidemill status {pipeline}` shows the last batch; `tidemill history {pipeline}` the newest events",
        )
    return found


def _say_older(count: int, *, bounded: bool) -> None:
    if bounded and count > 0:
        typer.echo(f"{count:,} older events are not shown; --all shows every one")


def _show(entries: object) -> None:
    assert isinstance(entries, list | tuple)
    table = grid("event", "at", "batch", "attempt", "what", "", numbers=("event", "batch", "attempt"))
    for entry in entries:
        table.add_row(*_row(entry))
    console().print(table)


def _row(entry: Entry) -> tuple[str, str, str, str, str, str]:
    event = entry.event
    batch_id, attempt = (event.plan.batch_id, 1) if isinstance(event, Planned) else (event.batch_id, event.attempt)
    at = show_clock(entry.recorded_at)
    return str(entry.sequence), at, str(batch_id), str(attempt), type(event).__name__.lower(), _said(event)


def _said(event: Event) -> str:
    match event:
        case Planned(plan=plan, executor=executor):
            return f"{_planned(plan)}; semantics {version_of(plan.semantics)}; {executor.text}"
        case Claimed(executor=executor):
            return executor.text
        case Audited(verdict=verdict):
            broken = ", ".join(map(str, verdict.broken))
            blocks = "blocks: " if verdict.blocks else ""
            return f"{blocks}{len(verdict.results) - len(verdict.broken)} of {len(verdict.results)} rules hold" + (
                f"; broken: {broken}" if broken else ""
            )
        case Committed(published=published, position=position):
            rows = counted(published, "row")
            said = f"{balance(account_of(event))}; published {rows}; watermark {show_watermark(position.watermark)}"
            return said + "".join(f"; {text}" for text in (*broken_rules(event), *_incomplete(event)))
        case Cancelled(reason=reason):
            return reason
        case Decided(decision=decision, by=by, why=why):
            return f"{decision.value} by {told(by, why)}"
        case Superseded(generation=generation, by=by, why=why):
            return f"by generation {generation}, of {told(by, why)}"
        case Forgotten(until=until):
            return f"the state of windows that end by {show_moment(until)} may go"
        case _:
            assert_never(event)


def _incomplete(commit: Committed) -> list[str]:
    return [
        f"windows of {table} from {show_moment(span.first)} to {show_moment(span.last)} may lack what was skipped"
        for table, span in (commit.incomplete or {}).items()
    ]


def _planned(plan: BatchPlan) -> str:
    ranges = [r for items in plan.reads.values() for r in items]
    shown = ", ".join(map(str, ranges[:4])) + (f" and {len(ranges) - 4:,} more" if len(ranges) > 4 else "")
    match plan.work:
        case Rewind(position=position, reason=reason):
            return f"rewind to batch {position.batch_id} by {_told(reason)}"
        case Switch(generation=generation, reason=reason):
            return f"switch to generation {generation} by {_told(reason)}"
        case Fold(batches=batches):
            return f"fold of {show_batches(batches)}"
        case Repair() | BackfillStep() | Reading():
            asked = asked_of(plan)
            return f"{plan.kind.value}: {shown or 'no records'}" + (f"; by {_told(asked)}" if asked else "")
        case Live(drain=drain, skipped=skipped, redefined=redefined, gone=gone):
            left = "".join(f"; {each.place} is gone, says {_told(each)}" for each in gone or ())
            lost = f"; skipped, because they are gone: {', '.join(map(str, skipped))}" if skipped else ""
            return f"{shown or 'no records'}{'; drains the input' if drain else ''}{lost}{left}{_redefined(redefined)}"
        case _:
            assert_never(plan.work)


def _told(reason: Reason | Gone) -> str:
    return told(reason.by, reason.why)


def _redefined(redefined: Redefined | None) -> str:
    if redefined is None:
        return ""
    reason, changed = redefined.reason, redefined.tables
    tables = "; ".join(f"{table}: {' '.join(' '.join(lines).split())}" for table, lines in changed.items())
    return f"; from now on numbers mean something else, by {_told(reason)} ({tables})"
