"""`tidemill audit`: show a batch that its audit blocks, and decide what happens to it."""

from __future__ import annotations

import getpass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.cli.amending import By, Why, looked_at, needed_reason
from tidemill.cli.output import MOST, AsJson, PipelineName, console, grid
from tidemill.cli.views.log import print_json
from tidemill.core.errors import AmendmentError
from tidemill.core.plan.amendments import Reason
from tidemill.core.protocol.events import Decision
from tidemill.inspect.lines import read_line
from tidemill.inspect.open_batch import CHOICES, decision_text

if TYPE_CHECKING:
    from rich.console import Console

    from tidemill.core.contract.verdict import CheckResult
    from tidemill.core.protocol.view import OpenBatch
    from tidemill.ledger.ledger import Ledger

app = typer.Typer(no_args_is_help=True, help="A batch that its audit blocks: look at it, and decide.")

_REASON = ' --why "..."'

WhyNeeded = Annotated[str, typer.Option("--why", metavar="TEXT", help="Your reason, required; the ledger keeps it.")]


@app.command("show")
def show(
    ctx: typer.Context,
    pipeline: PipelineName,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            min=1,
            max=MOST,
            metavar="N",
            help="The batch to show. Default: the one that waits for a decision.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the audit of a batch found."""
    opened, results = _blocked(ctx, pipeline) if batch is None else (None, _past(ctx, pipeline, batch))
    if as_json:
        for each in results:
            print_json(_result(each))
        return
    out = console()
    table = grid("table", "rule", "severity", "looks at", "holds", "found")
    for each in results:
        looks, holds = each.scope.value if each.scope else "", "yes" if each.passed else "no"
        table.add_row(each.table, each.rule, each.severity.value, looks, holds, each.observed)
    out.print(table)
    for each in results:
        if not each.passed and each.expected:
            out.print(f"{each.rule}: {each.found}", soft_wrap=True)
        for row in () if each.passed else each.failing_rows:
            out.print(f"{each.rule}: {dict(row)}", soft_wrap=True)
    if opened is not None:
        _show_choices(out, pipeline, opened)


def _show_choices(out: Console, pipeline: str, opened: OpenBatch) -> None:
    """What the batch read, and the commands that decide about it."""
    out.print(read_line(opened.plan), soft_wrap=True)
    if opened.decided is not None and not opened.is_blocked:
        out.print(decision_text(opened.decided), soft_wrap=True)
    if opened.is_blocked:
        out.print("it waits for a decision:")
        for decision, what in CHOICES.items():
            reason = "" if decision is Decision.RETRY else _REASON
            command = f"tidemill audit {decision.value} {pipeline}{reason}"
            out.print(f"  {command:<{len(pipeline) + 38}}{what}", soft_wrap=True)


@app.command("accept")
def accept(ctx: typer.Context, pipeline: PipelineName, why: WhyNeeded = "", by: By = None) -> None:
    """Publish the batch as it is, whatever the audit found."""
    _decide(ctx, pipeline, Decision.ACCEPT, needed_reason(by, why))


@app.command("divert")
def divert(ctx: typer.Context, pipeline: PipelineName, why: WhyNeeded = "", by: By = None) -> None:
    """Send every record of the batch to quarantine, and go on; `tidemill quarantine replay` brings them back."""
    _decide(ctx, pipeline, Decision.DIVERT, needed_reason(by, why))


@app.command("retry")
def retry(ctx: typer.Context, pipeline: PipelineName, by: By = None, why: Why = "") -> None:
    """Audit the batch once more."""
    _decide(ctx, pipeline, Decision.RETRY, Reason(by=by or getpass.getuser(), why=why))


def _decide(ctx: typer.Context, pipeline: str, decision: Decision, reason: Reason) -> None:
    from tidemill.repair.deciding import decide

    ledger, generation = _ledger(ctx, pipeline)
    batch = decide(ledger, pipeline, decision, reason, datetime.now(UTC))
    does, of = (
        ("the next run", "")
        if generation is None
        else (f"`tidemill rebuild {pipeline}`", f" of generation {generation}")
    )
    typer.echo(f"{pipeline}: batch {batch}{of}: {decision.value} is recorded; {does} does it")


def _ledger(ctx: typer.Context, pipeline: str) -> tuple[Ledger, int | None]:
    from tidemill.repair.unfinished import blocked_ledger

    return blocked_ledger(looked_at(ctx, pipeline))


def _blocked(ctx: typer.Context, pipeline: str) -> tuple[OpenBatch, tuple[CheckResult, ...]]:
    ledger, _ = _ledger(ctx, pipeline)
    batch = ledger.view().open_batch
    if batch is None or batch.audited is None:
        raise AmendmentError(
            f"{pipeline}: no batch waits after its audit",
            fix=f"`tidemill audit show {pipeline} --batch N` shows a past one",
        )
    return batch, batch.audited.verdict.results


def _past(ctx: typer.Context, pipeline: str, batch: int) -> tuple[CheckResult, ...]:
    """The last verdict on a batch of the published generation."""
    from tidemill.core.plan.slices import BatchRange
    from tidemill.core.protocol.events import Audited

    found = looked_at(ctx, pipeline).ledger.of_batches(BatchRange(batch, batch + 1), Audited)
    if not found or not isinstance(event := found[-1].event, Audited):
        raise AmendmentError(
            f"{pipeline}: no audit of batch {batch} is in the ledger",
            fix=f"`tidemill history {pipeline}` shows which batches have one",
        )
    return event.verdict.results


def _result(found: CheckResult) -> dict[str, object]:
    return {
        "table": found.table,
        "rule": found.rule,
        "severity": found.severity.value,
        "passed": found.passed,
        "looks_at": found.scope.words if found.scope else "",
        "observed": found.observed,
        "expected": found.expected or "",
        "failing_rows": [dict(row) for row in found.failing_rows],
    }
