"""What changes in published tables, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemill.cli.output import styled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from tidemill.inspect.table_changes import TableChange


def show_changes(out: Console, changes: Iterable[TableChange]) -> None:
    """Print each change: what readers lose, and what the next batch does about it. Prints nothing without changes."""
    for change in changes:
        style = ("wrong", "red") if change.is_wrong else ("note", "yellow")
        out.print(styled("table ", style, f": {change}"), soft_wrap=True)
        out.print(f"  readers: {change.readers or 'lose nothing'}", soft_wrap=True)
        out.print(f"  the next batch {change.batch}", soft_wrap=True)
