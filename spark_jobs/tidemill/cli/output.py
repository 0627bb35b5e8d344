"""Output that several commands share, and the project they work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.core.errors import TidemillError, printable
from tidemill.core.protocol.summary import ACCOUNT
from tidemill.core.time.times import show_moment
from tidemill.core.time.watermarks import BEGINNING, END

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tidemill.core.plan.position import Since
    from tidemill.core.protocol.account import Account
    from tidemill.project.project import Project

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")]
MOST = 2**63 - 1
"""The largest number of an option: tables and ledgers hold nothing larger."""

PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline's name.")]

_WIDTH_OF_FILES = 160


def open_project(ctx: typer.Context) -> Project:
    """Open the project of `--project`, or the one around the working directory.

    Raises:
        ConfigError: there is no project, or its `tidemill.toml` is wrong.
    """
    from tidemill.project.project import Project

    return Project.load(ctx.find_root().params.get("project"))


def of_each(project: Project, pipeline: str | None, look: Callable[[str], None]) -> list[TidemillError]:
    """Call `look` for the named pipeline, or for each pipeline of the project; then return the faults of some of them.

    Raises:
        TidemillError: something is wrong with the named pipeline.
    """
    if pipeline is not None:
        look(pipeline)
        return []
    faults: list[TidemillError] = list(project.faults)
    for name in project.pipeline_names():
        try:
            look(name)
        # A fault of one pipeline must not hide the others.
        except TidemillError as error:
            faults.append(error)
    return faults


def end_with(faults: Sequence[TidemillError]) -> None:
    """Show the faults of some pipelines after all others were handled.

    Raises:
        typer.Exit: there are faults. The exit code is that of the first one that needs a person, else of the first.
    """
    from tidemill.cli.failures import show_error

    for fault in faults:
        show_error(fault)
    if faults:
        raise typer.Exit(min(faults, key=lambda fault: fault.retryable).exit_code)


def console(*, markup: bool = False) -> Console:
    """Standard output; wide, plain and with whole lines if it is not a terminal: programs read errors line by line.

    Text is printed as it is unless the caller sets `markup`: texts of users and records may look like markup.
    """
    from rich.console import Console

    found = Console(highlight=False, markup=markup)
    return (
        found if found.is_terminal else Console(highlight=False, markup=markup, width=_WIDTH_OF_FILES, soft_wrap=True)
    )


def styled(*parts: str | tuple[str, str]) -> Text:
    """One line of several texts, each plain or with a style such as "bold red"."""
    from rich.text import Text

    return Text.assemble(*parts)


def grid(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table with a line under its header. Columns named in `numbers` are aligned right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def show_watermark(watermark: int) -> str:
    """Format a watermark for people."""
    if watermark == BEGINNING:
        return "none yet"
    return "end of input" if watermark == END else show_moment(watermark)


def whole(since: Since) -> str:
    """The event time after which windows are complete in a table that batches had left out; empty if there is none."""
    return "" if since.event_time is None else show_moment(since.event_time)


def one_line(text: str) -> str:
    """Make text of records or files safe as a part of one line: systems of CI run what begins a line with `::`."""
    return printable(text).replace("\n", "\\n")


def ago(then: datetime, now: datetime | None = None) -> str:
    """How long ago a moment was, in its largest unit."""
    seconds = int(((now or datetime.now(UTC)) - then).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"


def balance(account: Account) -> str:
    """The account of a batch as one equation. `shed` is shown only if it is not zero."""
    shown = ACCOUNT[1:] if account.shed else ACCOUNT[1:-1]
    parts = " + ".join(f"{part} {getattr(account, part):,}" for part in shown)
    return f"read {account.read:,} = {parts}"
