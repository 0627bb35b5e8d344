"""Prints the demonstration: a screen or two of text, the same on a terminal and in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from tidemill.cli.output import balance, console
from tidemill.cli.views.batch_lines import BatchLines
from tidemill.demo.site import PIPELINE, TABLE, TOPIC
from tidemill.demo.story import Ending
from tidemill.demo.traffic import Kind

if TYPE_CHECKING:
    from rich.status import Status

_BAR = 44
_EIGHTHS = " ▏▎▍▌▋▊▉"


class Stage:
    """Shows what happens, act by act."""

    def __init__(self, out: Console, status: Status | None) -> None:
        self._out, self._status = out, status
        self._lines = BatchLines(out, status)

    def begins(self, what: str) -> None:
        """Show what takes a while in the status line; nothing if there is no terminal."""
        if self._status is not None:
            self._status.update(what)

    def log_written(self, records: int, kinds: Mapping[Kind, int]) -> None:
        """Print how many records were written, by kind."""
        self._act("The log")
        self._out.print(f"  {records:,} records in topic {TOPIC}")
        for kind in Kind:
            if kinds.get(kind):
                self._out.print(f"  [dim]{kinds[kind]:>9,}  {kind.value}[/]")
        self._act("Batches")

    def committed(self, batch: Mapping[str, Any]) -> None:
        """Print the line of a batch."""
        self._lines.batch(batch)
        self.begins(f"batch {batch['batch_id'] + 1}")

    def killed(self, batch_id: int, place: str) -> None:
        """Print where the process was killed."""
        self._lines.incident(batch_id, f"SIGKILL at {place}, before the commit")

    def ends(self, ending: Ending) -> None:
        """Print the account, the proof, and where everything is."""
        if self._status is not None:
            self._status.stop()
        self._act("The account")
        self._out.print(f"  [bold]{balance(ending.account)}[/]")
        if ending.reasons:
            self._act("Quarantine, by reason")
            for reason, count in ending.reasons.items():
                self._out.print(f"{count:>9,}  {escape(reason)}")
        self._act("Busiest pages, requests")
        self._chart(ending.pages)
        self._act("The proof")
        self._proof(ending)
        self._act("Where it is")
        self._places(ending)

    def _act(self, title: str) -> None:
        self._out.print(f"\n[bold cyan]{title}[/]")

    def _chart(self, pages: tuple[tuple[str, int], ...]) -> None:
        most = max((count for _, count in pages), default=1)
        width = max((len(page) for page, _ in pages), default=0)
        for page, count in pages:
            shown = page if len(page) <= 40 else f"{page[:39]}…"
            self._out.print(f"  {escape(shown):<{min(width, 40)}} [blue]{_bar(count / most)}[/] {count:,}")

    def _proof(self, ending: Ending) -> None:
        proof = ending.proof
        self._out.print(
            f"  {proof.rows:,} published rows, each compared with what one computation over the log gives\n"
            "  (`tidemill verify`), and the account with what was appended and put aside."
        )
        if ending.killed_at is None:
            self._out.print("  Nothing was published, so no batch was killed while it published.")
        for name, count in (("lost", proof.lost), ("doubled", proof.doubled)):
            self._out.print(f"  rows {name:<8}[bold {'red' if count else 'green'}]{count:,}[/]")
        if not proof.holds:
            self._out.print(f"  [bold red]rows with other values: {proof.different:,}[/]")
            for example in proof.examples:
                self._out.print(f"    {escape(example)}")

    def _places(self, ending: Ending) -> None:
        project, folder = ending.project, ending.project.folder
        tables = {
            "published": project.published_uri(TABLE),
            "quarantine": project.table_uri(PIPELINE, "quarantine"),
            "late": project.table_uri(PIPELINE, "late"),
            "ledger": project.table_uri(PIPELINE, "ledger"),
        }
        for name, uri in tables.items():
            if Path(uri).exists():
                self._out.print(f"  {name:<12}{_near(uri)}", soft_wrap=True)
        self._out.print(f"  {'look':<12}tidemill --project {_near(folder)} status {PIPELINE}", soft_wrap=True)
        self._out.print(f"\n[dim]{ending.batches} batches, {ending.seconds:.1f} s in all[/]")


@contextmanager
def stage_on_console() -> Iterator[Stage]:
    """A stage on standard output, with a status line on a terminal."""
    out = console(markup=True)
    if not out.is_terminal:
        yield Stage(out, None)
        return
    with out.status("") as status:
        yield Stage(out, status)


def _bar(share: float) -> str:
    eighths = max(round(share * _BAR * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _near(path: str | Path) -> str:
    """The path relative to the working directory if it lies below it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else str(path)
