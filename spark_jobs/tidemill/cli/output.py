"""What several commands say, and the project they say it of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidemill.core.errors import TidemillError
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
"""The largest number of an option: tables and ledgers hold none that is larger."""

PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="The pipeline's name.")]

_WIDTH_OF_FILES = 160
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def open_project(ctx: typer.Context) -> Project:
    """The project of `--project`, or the one that the command runs in.

    Raises:
        ConfigError: there is none, or its `tidemill.toml` is wrong.
    """
    from tidemill.project.project import Project

    return Project.load(ctx.find_root().params.get("project"))


def of_each(project: Project, pipeline: str | None, look: Callable[[str], None]) -> list[TidemillError]:
    """Look at the pipeline that was named; or at each of the project, and return what is wrong with some of them.

    Raises:
        TidemillError: something is wrong with the pipeline that was named.
    """
    if pipeline is not None:
        look(pipeline)
        return []
    faults: list[TidemillError] = list(project.faults)
    for name in project.pipeline_names():
        try:
            look(name)
        # What is wrong with one of them does not hide the others.
        except TidemillError as error:
            faults.append(error)
    return faults


def end_with(faults: Sequence[TidemillError]) -> None:
    """Show what is wrong with some pipelines, after all others were seen to.

    Raises:
        typer.Exit: there is something; with the code of the first that needs a person, or of the first.
    """
    from tidemill.cli.failures import show_error

    for fault in faults:
        show_error(fault)
    if faults:
        raise typer.Exit(min(faults, key=lambda fault: fault.retryable).exit_code)


def console(*, markup: bool = False) -> Console:
    """Standard output; where nobody is looking it is wide, and plain.

    Text is shown as it is, unless it is known to have `markup`: what people and records say may look like some.
    """
    from rich.console import Console

    found = Console(highlight=False, markup=markup)
    return found if found.is_terminal else Console(highlight=False, markup=markup, width=_WIDTH_OF_FILES)


def styled(*parts: str | tuple[str, str]) -> Text:
    """A line of texts, each as it is, or with a style such as "bold red"."""
    from rich.text import Text

    return Text.assemble(*parts)


def grid(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """An empty table with a line under its head; columns named in `numbers` are flush right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold")
    return table


def show_watermark(watermark: int) -> str:
    """A watermark for people."""
    if watermark == BEGINNING:
        return "none yet"
    return "end of input" if watermark == END else show_moment(watermark)


def whole(since: Since) -> str:
    """The event time after which windows are whole of a table that batches had left out, for people."""
    return "" if since.event_time is None else show_moment(since.event_time)


def printable(text: str) -> str:
    """What records say, for a terminal: control characters but line ends are written as Python does."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def ago(then: datetime, now: datetime | None = None) -> str:
    """How long ago a moment was, in its largest unit."""
    seconds = int(((now or datetime.now(UTC)) - then).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"


def balance(account: Account) -> str:
    """The conservation law with its numbers; `shed` is shown only where something was."""
    shown = ACCOUNT[1:] if account.shed else ACCOUNT[1:-1]
    parts = " + ".join(f"{part} {getattr(account, part):,}" for part in shown)
    return f"read {account.read:,} = {parts}"


def counted(counts: Mapping[str, int], noun: str) -> str:
    """For example "3 rows to a, 4 rows to b"."""
    return ", ".join(f"{count:,} {noun} {name}" for name, count in counts.items()) or "nothing"
